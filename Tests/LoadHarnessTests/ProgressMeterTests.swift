import Core
import Testing

@testable import LoadHarness

@Suite struct ProgressMeterTests {
    /// A clock that only the test advances, and what was written.
    private final class Replay: Sendable {
        private let time = Lock(Duration.zero)
        private let texts = Lock<[String]>([])

        func meter(_ style: ProgressMeter.Style, patience: Duration = .zero) -> ProgressMeter {
            ProgressMeter(
                style, prefix: "p: ", patience: patience, now: { self.time.withLock { $0 } },
                write: { text in self.texts.withLock { $0.append(text) } })
        }

        func wait(_ duration: Duration) { time.withLock { $0 += duration } }

        /// What was written since the last call.
        func written() -> [String] {
            texts.withLock { texts in
                defer { texts = [] }
                return texts
            }
        }
    }

    private let erase = "\r\u{1b}[K"

    @Test("On a terminal one line rewrites itself, with the time left")
    func terminal() {
        let replay = Replay()
        let meter = replay.meter(.terminal(columns: { 80 }))
        meter.begin("set-up")
        #expect(replay.written() == [erase + "p: set-up (0 s elapsed)"])
        replay.wait(.seconds(65))
        meter.refresh()
        #expect(replay.written() == [erase + "p: set-up (1:05 elapsed)"])
        // Set-up is no part of the estimate: a quarter of the rest took ten seconds.
        meter.begin("rounds", share: 0...1)
        _ = replay.written()
        replay.wait(.seconds(10))
        meter.show("round 2 of 5", done: 0.25)
        #expect(replay.written() == [erase + "p: rounds, round 2 of 5 (1:15 elapsed, about 30 s left)"])
        // The time left goes down while the step takes its time, and is left out when it is over.
        replay.wait(.seconds(12))
        meter.refresh()
        #expect(replay.written() == [erase + "p: rounds, round 2 of 5 (1:27 elapsed, about 18 s left)"])
        replay.wait(.seconds(3600))
        meter.refresh()
        #expect(replay.written() == [erase + "p: rounds, round 2 of 5 (1:01:27 elapsed)"])
        meter.end()
        #expect(replay.written() == [erase])
        meter.begin("nothing")
        #expect(!meter.refresh())
        #expect(replay.written().isEmpty)
    }

    @Test("A terminal's line is rewritten ten times a second at most, and fits into its columns")
    func terminalBounds() {
        let replay = Replay()
        let meter = replay.meter(.terminal(columns: { 30 }))
        meter.begin("a part with a long name")
        for number in 0..<99 {
            replay.wait(.milliseconds(10))
            meter.show("step \(number)")
        }
        let lines = replay.written()
        #expect(lines.count == 10)
        #expect(lines.allSatisfy { $0.count == erase.count + 29 }, "\(lines)")
        #expect(lines.first == erase + "p: a part with… (0 s elapsed)")
        let narrow = replay.meter(.terminal(columns: { 5 }))
        narrow.begin("part")
        #expect(replay.written().map(\.count) == [erase.count + 4])
    }

    @Test("The line on a terminal is erased before other output")
    func aside() {
        let replay = Replay()
        let meter = replay.meter(.terminal(columns: { 80 }))
        meter.aside {}
        #expect(replay.written().isEmpty)
        meter.begin("part")
        meter.aside { #expect(replay.written() == [erase + "p: part (0 s elapsed)", erase]) }
        meter.aside {}
        #expect(replay.written().isEmpty)
    }

    @Test("Into a file goes a line for each part and one every ten seconds")
    func file() {
        let replay = Replay()
        let meter = replay.meter(.lines(every: .seconds(10)))
        meter.begin("first", share: 0...0.5)
        #expect(replay.written() == ["p: first (0 s elapsed)\n"])
        for second in 1...25 {
            replay.wait(.seconds(1))
            meter.show("round \(second)", done: Double(second) / 25)
        }
        #expect(
            replay.written() == [
                "p: first, round 10 (10 s elapsed, about 40 s left)\n",
                "p: first, round 20 (20 s elapsed, about 30 s left)\n",
            ])
        meter.begin("second", share: 0.5...1)
        #expect(replay.written() == ["p: second (25 s elapsed, about 25 s left)\n"])
        meter.refresh()
        #expect(replay.written().isEmpty)
        meter.end()
        #expect(replay.written().isEmpty)
    }

    @Test("Work that ends soon prints nothing, and longer work prints its present part")
    func patience() {
        for style in [ProgressMeter.Style.terminal(columns: { 80 }), .lines(every: .seconds(10))] {
            let replay = Replay()
            let meter = replay.meter(style, patience: .seconds(5))
            meter.begin("first")
            replay.wait(.seconds(4))
            meter.begin("second")
            #expect(replay.written().isEmpty)
            replay.wait(.seconds(1))
            meter.refresh()
            #expect(replay.written().map { $0.contains("p: second (5 s elapsed)") } == [true])
        }
        let replay = Replay()
        let quiet = replay.meter(.quiet)
        quiet.begin("part")
        quiet.refresh()
        quiet.end()
        #expect(replay.written().isEmpty)
    }
}
