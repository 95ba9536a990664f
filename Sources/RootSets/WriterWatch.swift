import Core
import Dispatch
import Foundation
import Platform
import Synchronization

/// Watches the writer's thread: tells when it computes for too long without an end. Damaged data may make a loop
/// endless.
///
/// The time is the processor's. A thread that waits for a slow disk uses none, so it is never mistaken for one that
/// loops.
final class WriterWatch: Sendable {
    private struct State {
        var thread: ThreadClock?
        /// The progress that was seen last, and the thread's processor time then.
        var progress: UInt64 = 0
        var since: Duration?
        var hasFired = false
    }

    private let limit: Duration
    private let state = Lock(State())
    private let isBusy = Atomic<Bool>(false)
    private let progress = Atomic<UInt64>(0)

    /// `limit`: processor time without progress, over a small data file.
    init(limit: Duration = .seconds(Limits.writerSecondsMax)) {
        self.limit = limit
    }

    /// Watches the calling thread from now on.
    func bind() {
        state.withLock { $0.thread = ThreadClock.ofThisThread() }
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
            guard !state.hasFired, let thread = state.thread else { return false }
            let seen = progress.load(ordering: .relaxed)
            guard isBusy.load(ordering: .acquiring), let time = thread.time else {
                state.since = nil
                return false
            }
            guard let since = state.since, seen == state.progress else {
                (state.progress, state.since) = (seen, time)
                return false
            }
            state.hasFired = time - since >= limit(fileBytes: fileBytes)
            return state.hasFired
        }
    }
}
