import Core
import Synchronization
import Wire

/// One caller's proof, from the call until its verdict or error.
///
/// Whoever changes `stage` to `ended` ends the call: an answer, the caller's cancellation, the deadline or the end of
/// the connection. So a call ends once, and no lock is needed for it.
///
/// Sendable without the compiler's proof: `waiter` is written before the call waits. Then only who has ended the call
/// uses it, and writes `outcome` before it resumes the caller, who reads that. `request` is used under the link's lock.
final class VerifyCall: @unchecked Sendable {
    /// What proofs have in common that can be in one request.
    struct Kind: Hashable {
        let isSigned: Bool
        let atLeast: UInt64

        var operation: Operation { isSigned ? .verify : .verifyInclusion }
    }

    private enum Stage: UInt8, AtomicRepresentable {
        case new, waiting, ended
    }

    let kind: Kind
    let collaboration: CollaborationIdentifier
    /// What `ProofBatch.encoded` has made.
    let proof: [UInt8]
    let deadline: ContinuousClock.Instant
    /// The request that it is sent in, or was sent in last; 0 before it is in one.
    var request: UInt64 = 0
    private let stage = Atomic<Stage>(.new)
    private var waiter: UnsafeContinuation<Void, Never>?
    /// How the call has ended; `nil` when it was cancelled before it began to wait. Only for the resumed caller.
    private(set) var outcome: Result<Verdict, ServiceError>?

    /// `proof`: what `ProofBatch.encoded` has made.
    init(
        _ proof: [UInt8], in collaboration: CollaborationIdentifier, _ kind: Kind, deadline: ContinuousClock.Instant
    ) {
        self.kind = kind
        self.collaboration = collaboration
        self.proof = proof
        self.deadline = deadline
    }

    deinit {
        precondition(waiter == nil, "a caller was never resumed")
    }

    /// The most bytes that it takes of a request.
    var byteCount: Int { proof.count + 1 + Limits.collaborationBytesMax }

    /// Whether the call has not ended.
    var isAwaited: Bool { stage.load(ordering: .relaxed) != .ended }

    /// Lets the caller wait. When the call has ended already, resumes it at once and returns false.
    func wait(_ waiter: UnsafeContinuation<Void, Never>) -> Bool {
        self.waiter = waiter
        let (waits, _) = stage.compareExchange(
            expected: .new, desired: .waiting, ordering: .acquiringAndReleasing)
        guard !waits else { return true }
        self.waiter = nil
        waiter.resume()
        return false
    }

    /// Ends the call and resumes its caller. Returns false, and does nothing, when it has ended already.
    ///
    /// Must not be called under a lock: the executor of the caller's task may do anything when it gets the task.
    @discardableResult
    func end(_ outcome: Result<Verdict, ServiceError>) -> Bool {
        switch stage.exchange(.ended, ordering: .acquiringAndReleasing) {
        case .ended: return false
        // `wait` resumes the caller.
        case .new: return true
        case .waiting:
            let resumed = waiter
            waiter = nil
            self.outcome = outcome
            resumed?.resume()
            return true
        }
    }
}
