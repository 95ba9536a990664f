import Core

/// Measures how long a thread serves elements, one after the other, without the time for which others had its
/// processor.
///
/// Asking for the processor's time is a system call. So it is asked for at the beginning, and then only behind elements
/// that took long.
struct TurnClock {
    private let now: @Sendable () -> ContinuousClock.Instant
    private let processorTime: @Sendable () -> Duration
    /// When the last element ended.
    private(set) var time: ContinuousClock.Instant
    /// When the processor's time was asked for last, and what it was.
    private var asked: (time: ContinuousClock.Instant, processor: Duration)

    /// Begins with the first element. `processorTime`: for which the calling thread has had a processor so far.
    init(
        now: @escaping @Sendable () -> ContinuousClock.Instant, processorTime: @escaping @Sendable () -> Duration
    ) {
        (self.now, self.processorTime) = (now, processorTime)
        time = now()
        asked = (time, processorTime())
    }

    /// Ends an element, and begins with the next one. Returns how long it took, in nanoseconds: at least 1. Behind a
    /// long one also the time is subtracted for which the thread had no processor during short ones before it. What is
    /// left counts as long as the longest short one, at least: so a clock that stands still makes nothing free.
    mutating func next() -> Int {
        let ended = now()
        var length = ended - time
        time = ended
        if length >= .microseconds(Limits.servedMicrosecondsUnchecked) {
            let processor = processorTime()
            let lost = (ended - asked.time) - (processor - asked.processor)
            asked = (ended, processor)
            length = max(length - max(lost, .zero), .microseconds(Limits.servedMicrosecondsUnchecked))
        }
        return Int(max(1, length / .nanoseconds(1)))
    }
}
