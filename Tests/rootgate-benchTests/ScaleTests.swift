import Core
import Testing

@testable import rootgate_bench

@Suite struct ScaleTests {
    /// A clock that what is measured moves on.
    private final class Clock: Sendable {
        private let time = Lock(0.0)
        var now: Double { time.withLock { $0 } }
        func wait(_ seconds: Double) { time.withLock { $0 += seconds } }
    }

    private func scale(_ clock: Clock) -> Scale { Scale(isTiny: false, seconds: 0.5, now: { clock.now }) }

    @Test("A round ends by time, however long a call takes", arguments: [(0.125, 4), (0.25, 2), (30, 1)])
    func round(call: Double, calls: Int) {
        let clock = Clock()
        var count = 0
        let rate = scale(clock).rate(items: 256) {
            clock.wait(call)
            count += 1
        }
        #expect(count == calls)
        #expect(rate == 256 / call)
    }

    @Test("Rounds end by time as well, but three are measured", arguments: [(1.0, 5), (10, 4), (1000, 3)])
    func rounds(round: Double, count: Int) {
        let clock = Clock()
        // 75 seconds for all rounds; a round has a subject and a baseline, and the first one does not count.
        let rounds = scale(clock).alternate {
            clock.wait(round)
            return 1
        } _: {
            clock.wait(round)
            return 2
        }
        #expect(rounds.count == count)
        #expect(rounds.allSatisfy { $0 == (1, 2) })
        #expect(scale(Clock()).repeated { 1 }.count == 5)
    }

    @Test("As many items are prepared as take the time, within bounds")
    func count() {
        let scale = scale(Clock())
        #expect(scale.count(at: 1000, for: 0.5, in: 10...10_000) == 500)
        #expect(scale.count(at: 0, for: 0.5, in: 10...10_000) == 10)
        #expect(scale.count(at: .infinity, for: 0.5, in: 10...10_000) == 10_000)
    }

    @Test("Set-up that takes too long ends the benchmark")
    func setUp() throws {
        let clock = Clock()
        let scale = scale(clock).beginning(setUpShare: 0.5)
        clock.wait(900)
        try scale.settingUp("set-up", 0.5)
        clock.wait(1)
        #expect(throws: SetUpTooLong.self) { try scale.settingUp("set-up", 0.5) }
        // The next benchmark has its own time.
        try scale.beginning(setUpShare: 0).settingUp("set-up", 0)
    }
}
