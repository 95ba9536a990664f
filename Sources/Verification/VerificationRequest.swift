package import Core
import Synchronization

/// A request's proofs in the pool, and their verdicts.
///
/// Sendable without the compiler's proof: `next` is used under the pool's lock only; each worker writes the verdicts
/// and roots of the range that it took, and nobody reads them before the last range is done.
package final class VerificationRequest: @unchecked Sendable {
    package let count: Int
    package let isSigned: Bool
    /// One for each proof; valid as long as this request.
    package var verdicts: UnsafeMutableBufferPointer<Verdict> { verdictMemory.elements }
    /// One for each proof, or `nil` when they are not wanted; valid as long as this request.
    package var roots: UnsafeMutableBufferPointer<Digest>? { rootMemory.count > 0 ? rootMemory.elements : nil }
    /// Initializes `proofs`, which is as long as `positions`, with the proofs at those; they borrow from memory that
    /// lives as long as this request.
    package typealias ProofReader =
        @Sendable (_ positions: Range<Int>, _ proofs: UnsafeMutableBufferPointer<BorrowedProof>) -> Void

    let readProofs: ProofReader
    /// Called once, on the worker that finished last.
    let completion: @Sendable (VerificationRequest, ServiceError?) -> Void
    /// The first proof that no worker took yet.
    var next = 0
    private let verdictMemory: ScratchBuffer<Verdict>
    /// Empty when roots are not wanted.
    private let rootMemory: ScratchBuffer<Digest>
    private let unfinished: Atomic<Int>
    private let failure = Mutex<ServiceError?>(nil)

    /// `count`: at least one. `readProofs` may capture the buffer that keeps the proofs' memory alive.
    package init(
        count: Int, isSigned: Bool, wantsRoots: Bool, readProofs: @escaping ProofReader,
        completion: @escaping @Sendable (VerificationRequest, ServiceError?) -> Void
    ) {
        precondition(count > 0, "a request has at least one proof")
        self.count = count
        self.isSigned = isSigned
        self.readProofs = readProofs
        self.completion = completion
        unfinished = Atomic(count)
        verdictMemory = ScratchBuffer(repeating: .malformed, count: count)
        rootMemory = ScratchBuffer(repeating: .zero, count: wantsRoots ? count : 0)
    }

    /// Says that `count` more proofs have their verdicts, or failed; the last of them calls `completion`. Traps when
    /// that is more than there are.
    func finish(_ count: Int, failure error: ServiceError?) {
        precondition(count > 0, "no proof is finished")
        if let error { failure.withLock { $0 = $0 ?? error } }
        let left = unfinished.subtract(count, ordering: .acquiringAndReleasing).newValue
        precondition(left >= 0, "a proof is finished twice")
        if left == 0 { completion(self, failure.withLock { $0 }) }
    }
}
