import Core
import Foundation
import LoadHarness
import Platform

/// When a processor did not run a thread that only reads the clock: it ran the host's other machines, interrupts or
/// other programs then. No service on it answers at these moments.
struct ProcessorGaps: Equatable {
    /// Nanoseconds from the begin of the recording, in order, not overlapping.
    let gaps: [Range<UInt64>]

    /// Two reads of the clock are less than this apart while the thread runs.
    private static let gapNanoseconds: UInt64 = 20_000

    private static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// The gaps of the first `count` processors in the same `seconds`. Where the system chooses the processors, the
    /// threads are not confined to them.
    static func record(processors count: Int, seconds: Double) -> [ProcessorGaps] {
        let recorded = Lock([ProcessorGaps](repeating: ProcessorGaps(gaps: []), count: count))
        let begin = now
        let group = DispatchGroup()
        for processor in 0..<count {
            group.enter()
            Thread {
                _ = System.confineThread(toProcessor: processor)
                let gaps = record(from: begin, to: begin + UInt64(seconds * 1e9)) { now }
                recorded.withLock { $0[processor] = gaps }
                group.leave()
            }.start()
        }
        group.wait()
        return recorded.withLock { $0 }
    }

    /// `now`: the clock.
    static func record(from begin: UInt64, to end: UInt64, now: () -> UInt64) -> ProcessorGaps {
        var gaps: [Range<UInt64>] = []
        var last = begin
        while last < end {
            let read = now()
            if read - last > gapNanoseconds { gaps.append(last - begin..<read - begin) }
            last = read
        }
        return ProcessorGaps(gaps: gaps)
    }

    /// Runs work on the processor. Calls have to be in the order of time.
    struct Runner {
        private let gaps: [Range<UInt64>]
        private var next = 0

        init(_ processor: ProcessorGaps) { gaps = processor.gaps }

        /// When work of so many nanoseconds ends that begins at `moment` or when the gap ends that is then.
        mutating func end(ofWork nanoseconds: UInt64, from moment: UInt64) -> UInt64 {
            while next < gaps.count, gaps[next].upperBound <= moment { next += 1 }
            var (now, left, place) = (moment, nanoseconds, next)
            while place < gaps.count, gaps[place].lowerBound < now + max(left, 1) {
                left -= max(gaps[place].lowerBound, now) - now
                now = gaps[place].upperBound
                place += 1
            }
            return now + left
        }
    }

    /// The latencies of requests that are due at random moments, `perSecond` on average, in the recorded time: the
    /// generator sends and receives in no time, the service needs 1/`highest` seconds for each, and nothing but the
    /// gaps of their two processors and the requests before them holds them back.
    static func latencies(
        service: ProcessorGaps, generator: ProcessorGaps, seconds: Double, perSecond: Double, highest: Double
    ) -> Histogram {
        var (sender, server, receiver) = (Runner(generator), Runner(service), Runner(generator))
        var latencies = Histogram()
        var (due, free) = (0.0, UInt64(0))
        while true {
            due += -log(Double.random(in: .leastNonzeroMagnitude..<1)) * 1e9 / perSecond
            guard due < seconds * 1e9 else { return latencies }
            let sent = sender.end(ofWork: 0, from: UInt64(due))
            free = server.end(ofWork: UInt64(1e9 / highest), from: max(sent, free))
            latencies.record(receiver.end(ofWork: 0, from: free) - UInt64(due))
        }
    }
}
