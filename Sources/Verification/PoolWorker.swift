import Core
import Hashing

/// One worker of a pool, with its scratch memory.
///
/// Sendable without the compiler's proof: only one thread calls it, which is asserted.
package final class PoolWorker: @unchecked Sendable {
    let verifier: BatchVerifier
    let tagMaker: TagMaker
    let proofs = ScratchBuffer<BorrowedProof>(uninitializedCount: BatchVerifier.capacity)
    let verdicts = ScratchBuffer<Verdict>(repeating: .malformed, count: BatchVerifier.capacity)
    let roots = ScratchBuffer<Digest>(repeating: .zero, count: BatchVerifier.capacity)
    private let thread = ThreadConfinement()
    let wake: @Sendable () -> Void
    private unowned let pool: WorkerPool
    private var isAsleep = false

    init(
        _ pool: WorkerPool, _ verifier: BatchVerifier, _ tagMaker: TagMaker, _ wake: @escaping @Sendable () -> Void
    ) {
        self.pool = pool
        self.verifier = verifier
        self.tagMaker = tagMaker
        self.wake = wake
    }

    /// Performs a portion of the waiting work. Returns false when no work waits; the pool then calls `wake` when there
    /// is some.
    ///
    /// The first call binds the worker to its thread. A later call from another thread traps, and so does `awoke`.
    package func work() -> Bool {
        thread.bind()
        awoke()
        isAsleep = !pool.work(self)
        return !isAsleep
    }

    /// Tells the pool that the thread woke up without it, so that the pool does not wake it again. Must be called after
    /// each such wake-up.
    package func awoke() {
        thread.assertIsCurrentOrUnbound()
        guard isAsleep else { return }
        isAsleep = false
        pool.awoke(self)
    }
}
