import Core
import TestSupport
import Testing

@testable import Transport

@Suite("The time of turns")
struct TurnClockTests {
    private let start = ContinuousClock.now
    /// Microseconds that have passed, those in which the thread had a processor, and how often these were asked for.
    private let times = Shared((all: 0, own: 0, asked: 0))

    private var clock: TurnClock {
        TurnClock(
            now: { [start, times] in start + .microseconds(times.value.all) },
            processorTime: { [times] in
                times.with {
                    $0.asked += 1
                    return .microseconds($0.own)
                }
            })
    }

    /// Lets time pass: so many microseconds of this thread's, and so many of others.
    private func pass(_ own: Int, others: Int = 0) {
        times.with { ($0.all, $0.own) = ($0.all + own + others, $0.own + own) }
    }

    @Test("What an element took is told from the end of the one before")
    func lengths() {
        var clock = clock
        for length in [10, 3000, 49, 50] {
            pass(length)
            #expect(clock.next() == length * 1000)
        }
        #expect(clock.time == start + .microseconds(3109))
    }

    @Test("The time for which others had the processor is no element's, once it is long enough to ask")
    func others() {
        var clock = clock
        pass(20, others: 5000)
        #expect(clock.next() == 50_000, "a long one is never shorter than a short one")
        pass(10, others: 39)
        #expect(clock.next() == 49_000, "a short one is told as it was")
        pass(100)
        #expect(clock.next() == 61_000, "what others took before is subtracted later")
        pass(70)
        #expect(clock.next() == 70_000)
    }

    @Test("An element takes a nanosecond at least, also when the clocks differ")
    func least() {
        var clock = clock
        #expect(clock.next() == 1)
        pass(0, others: 100)
        #expect(clock.next() == 50_000)
        times.with { $0.own += 500 }
        pass(60)
        #expect(clock.next() == 60_000, "more time of the processor than has passed adds nothing")
    }

    @Test("The processor's time is asked for at the beginning and behind long elements")
    func questions() {
        var clock = clock
        for _ in 0..<100 {
            pass(10)
            _ = clock.next()
        }
        #expect(times.value.asked == 1)
        pass(50)
        _ = clock.next()
        #expect(times.value.asked == 2)
    }
}
