import Foundation

/// Measures the processor time of one thread, from any thread.
package struct ThreadClock: Sendable {
    private let clock: CInt

    /// The clock of the calling thread; `nil` where the system has none that other threads can read.
    package static func ofThisThread() -> ThreadClock? {
        System.clockOfThread.map { ThreadClock(clock: $0) }
    }

    /// How long processors have worked for the thread; `nil` when it has ended.
    package var time: Duration? { System.time(ofClock: clock) }
}

extension System {
    /// How long processors have worked for the calling thread.
    package static var processorTimeOfThread: Duration {
        var time = timespec()
        // It fails only where the clock does not exist.
        guard clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
