import Core

/// One worker of a pool, with the memory that it works in.
///
/// Sendable without the compiler's proof: one thread calls it, which is asserted.
package final class PoolWorker: @unchecked Sendable {
    let verifier: BatchVerifier
    let proofs = ScratchBuffer<BorrowedProof>(uninitializedCount: BatchVerifier.capacity)
    let verdicts = ScratchBuffer<Verdict>(repeating: .malformed, count: BatchVerifier.capacity)
    let roots = ScratchBuffer<Digest>(repeating: .zero, count: BatchVerifier.capacity)
    private let thread = ThreadConfinement()
    let wake: @Sendable () -> Void
    private unowned let pool: WorkerPool
    private var isAsleep = false

    init(_ pool: WorkerPool, _ verifier: BatchVerifier, _ wake: @escaping @Sendable () -> Void) {
        self.pool = pool
        self.verifier = verifier
        self.wake = wake
    }

    /// Does a share of what waits. False when nothing waits: then `wake` will be called when something does.
    ///
    /// The first call decides which thread the worker belongs to; a call from another thread traps, as it does in
    /// `awoke`.
    package func work() -> Bool {
        thread.bind()
        awoke()
        isAsleep = !pool.work(self)
        return !isAsleep
    }

    /// To be called when the thread wakes up without the pool, so that the pool does not wake it once more.
    package func awoke() {
        thread.assertIsCurrentOrUnbound()
        guard isAsleep else { return }
        isAsleep = false
        pool.awoke(self)
    }
}
