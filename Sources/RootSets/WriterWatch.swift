import Core
import Dispatch
import Foundation
import Platform
import Synchronization

/// Watches the writer's thread: tells when it computes for too long without an end. Damaged data may make a loop
/// endless.
///
/// The time is the processor's. A thread that waits for a slow disk uses none, so it is never mistaken for one that
/// loops. Between two looks no more counts than has passed meanwhile: a clock of processor time that jumps, as under
/// tools that fake the system's clock, ends no service.
final class WriterWatch: Sendable {
    private struct State {
        /// The thread's processor time; `nil` when it can't be read.
        var processorTime: @Sendable () -> Duration? = { nil }
        /// The progress that was seen last.
        var progress: UInt64 = 0
        /// The thread's processor time at the last look, and that look's moment in nanoseconds; `nil`: it did nothing.
        var last: (processor: Duration, moment: UInt64)?
        /// Processor time at least since it last proceeded.
        var used = Duration.zero
        var hasFired = false
    }

    private let limit: Duration
    private let now: @Sendable () -> UInt64
    private let state = Lock(State())
    private let isBusy = Atomic<Bool>(false)
    private let progress = Atomic<UInt64>(0)

    /// `limit`: processor time without progress, over a small data file. `now`: nanoseconds of a monotonic clock.
    init(
        limit: Duration = .seconds(Limits.writerSecondsMax),
        now: @escaping @Sendable () -> UInt64 = { MonotonicClock.nanoseconds }
    ) {
        (self.limit, self.now) = (limit, now)
    }

    /// Watches the calling thread from now on.
    func bind() {
        guard let clock = ThreadClock.ofThisThread() else { return }
        bind { clock.time }
    }

    /// Watches a thread by its processor time from now on.
    func bind(_ processorTime: @escaping @Sendable () -> Duration?) {
        state.withLock { $0.processorTime = processorTime }
    }

    func begin() {
        progress.add(1, ordering: .relaxed)
        isBusy.store(true, ordering: .releasing)
    }

    /// The thread has begun with another mutation, or has written a record: that can't go on for ever.
    func proceed() { progress.add(1, ordering: .relaxed) }

    func end() { isBusy.store(false, ordering: .releasing) }

    /// The limit over a data file of so many bytes: LMDB may look through the whole list of free pages for one value.
    func limit(fileBytes: Int) -> Duration { limit + .seconds(fileBytes / Limits.writerBytesPerSecond) }

    /// Looks at the thread. Returns true, once, when it has computed for longer than the limit since it last proceeded.
    /// Call it several times within the limit.
    func check(fileBytes: Int = 0) -> Bool {
        state.withLock { state in
            guard !state.hasFired else { return false }
            let seen = progress.load(ordering: .relaxed)
            guard isBusy.load(ordering: .acquiring), let time = state.processorTime() else {
                state.last = nil
                return false
            }
            let moment = now()
            defer { state.last = (time, moment) }
            guard let last = state.last, seen == state.progress else {
                (state.progress, state.used) = (seen, .zero)
                return false
            }
            state.used += min(max(time - last.processor, .zero), .nanoseconds(moment - min(moment, last.moment)))
            state.hasFired = state.used >= limit(fileBytes: fileBytes)
            return state.hasFired
        }
    }
}
