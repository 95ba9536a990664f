package import Core
import Foundation
package import RootSets
import Synchronization

/// The proofs of a request that the pool verifies, and their verdicts.
///
/// Sendable without the compiler's proof: `next` is used only under the pool's lock. Each worker writes only the
/// verdicts and roots of the range that it took. Nobody reads them before the last range is done.
package final class VerificationRequest: @unchecked Sendable {
    package let count: Int
    package let isSigned: Bool
    /// One verdict for each proof; valid as long as this request.
    package var verdicts: UnsafeMutableBufferPointer<Verdict> { verdictMemory.elements }
    /// One root hash for each proof, or `nil` when root hashes are not wanted; valid as long as this request.
    package var roots: UnsafeMutableBufferPointer<Digest>? { rootMemory.count > 0 ? rootMemory.elements : nil }
    /// Initializes `proofs` with the proofs at `positions`, which is as long. They borrow from memory that lives as
    /// long as this request.
    package typealias ProofReader =
        @Sendable (_ positions: Range<Int>, _ proofs: UnsafeMutableBufferPointer<BorrowedProof>) -> Void

    let readProofs: ProofReader
    /// Called once, on the worker that finished last.
    let completion: @Sendable (VerificationRequest, ServiceError?) -> Void
    /// The first proof that no worker has taken yet.
    var next = 0
    private let verdictMemory: ScratchBuffer<Verdict>
    /// Empty when roots are not wanted.
    private let rootMemory: ScratchBuffer<Digest>
    private let unfinished: Atomic<Int>
    /// Whether some proofs have verdicts, so that their challenges or nonces may be spent.
    private let hasVerdicts = Atomic(false)
    private let failure = Lock<ServiceError?>(nil)
    /// Whether what one proof meets in the storage fails that proof alone.
    let failsSingly: Bool
    private let failures = Lock<[Int: ServiceError]>([:])
    private let oldestMoment = Lock(ReadMoment.always)

    /// `count`: at least one. `failsSingly`: whether `failed` has the errors of single proofs. `readProofs` may
    /// capture the buffer that keeps the proofs' memory alive.
    package init(
        count: Int, isSigned: Bool, wantsRoots: Bool, failsSingly: Bool = false, readProofs: @escaping ProofReader,
        completion: @escaping @Sendable (VerificationRequest, ServiceError?) -> Void
    ) {
        self.failsSingly = failsSingly
        precondition(count > 0, "a request has no proofs")
        self.count = count
        self.isSigned = isSigned
        self.readProofs = readProofs
        self.completion = completion
        unfinished = Atomic(count)
        verdictMemory = ScratchBuffer(repeating: .malformed, count: count)
        rootMemory = ScratchBuffer(repeating: .zero, count: wantsRoots ? count : 0)
    }

    /// The errors of the proofs that have met damage or what is not checked yet, by their positions. Their verdicts
    /// mean nothing.
    package var failed: [Int: ServiceError] { failures.withLock { $0 } }

    /// Before the oldest of the snapshots that the verdicts come from: workers verify the parts of a long request one
    /// after the other.
    package var moment: ReadMoment { oldestMoment.withLock { $0 } }

    /// Counts the proofs at `positions` as verified or failed. The call that completes the request calls `completion`.
    /// `moment`: before the snapshot on which they were verified. Traps when more proofs are counted than there are.
    func finish(_ positions: Range<Int>, _ moment: ReadMoment, failure error: ServiceError?) {
        precondition(!positions.isEmpty, "the number of finished proofs is not positive")
        if case .asOf = moment { oldestMoment.withLock { $0 = $0.older(than: moment) } }
        if let error {
            if failsSingly, error.isOfSingleProofs {
                failures.withLock { failures in for position in positions { failures[position] = error } }
            } else {
                failure.withLock { $0 = $0 ?? error }
            }
        } else {
            hasVerdicts.store(true, ordering: .relaxed)
        }
        let left = unfinished.subtract(positions.count, ordering: .acquiringAndReleasing).newValue
        precondition(left >= 0, "a proof was finished twice")
        if left == 0 { completion(self, failure.withLock { $0 }.map { whole($0) }) }
    }

    /// The error of the whole request. Busy says that nothing was done.
    private func whole(_ error: ServiceError) -> ServiceError {
        guard error.code == .busy, isSigned, hasVerdicts.load(ordering: .relaxed) else { return error }
        return ServiceError(.storageFailed, "\(error.reason), and challenges of the request may be spent")
    }
}

extension ServiceError {
    /// Whether the storage has refused what one proof needs, and perhaps nothing that another one needs: it is damaged,
    /// or the check of the start has not come to it.
    var isOfSingleProofs: Bool { code == .storageDamaged || code == .busy && detail == Limits.uncheckedMilliseconds }
}
