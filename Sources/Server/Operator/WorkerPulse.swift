import Core
import Synchronization

/// Asks each worker's thread again and again for a sign of life. A thread gives it between two portions of its work.
final class WorkerPulse: Sendable {
    /// Runs a function on the worker's thread, between two portions of its work.
    typealias Asking = @Sendable (@escaping @Sendable () -> Void) -> Void

    private struct Beat {
        /// When the last sign came, in milliseconds of the clock.
        var last: UInt64
        var isAsked = false
    }

    private let workers: [Asking]
    private let clock: MonotonicClock
    private let beats: Lock<[Beat]>

    init(_ workers: [Asking], clock: MonotonicClock) {
        self.workers = workers
        self.clock = clock
        beats = Lock([Beat](repeating: Beat(last: clock.milliseconds), count: workers.count))
    }

    /// Asks every worker that has answered the last time.
    func ask() {
        for (number, worker) in workers.enumerated() {
            let isFree = beats.withLock { beats in
                defer { beats[number].isAsked = true }
                return !beats[number].isAsked
            }
            guard isFree else { continue }
            worker { [self] in
                let now = clock.milliseconds
                beats.withLock { $0[number] = Beat(last: now) }
            }
        }
    }

    /// Whether a worker has been silent for so long that only a restart helps.
    var isDead: Bool { (mostSilent?.milliseconds ?? 0) > Limits.workerDeadMilliseconds }

    /// The worker that has been silent for the longest time, and for how many milliseconds.
    var mostSilent: (worker: Int, milliseconds: UInt64)? {
        let now = clock.milliseconds
        return beats.withLock { beats in
            beats.enumerated().map { ($0, now - min(now, $1.last)) }.max { $0.1 < $1.1 }
        }
    }
}
