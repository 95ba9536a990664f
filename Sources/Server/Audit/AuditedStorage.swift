import Audit
import Collaboration
import Core
import Foundation
import RootSets

/// The way of all mutations to the storage. With an audit, a mutation is admitted by the audit first, and what came of
/// it is told after its line is durable. A mutation that changes principals replaces the table of them before anything
/// is told.
struct AuditedStorage: Sendable {
    let rootSets: RootSets
    let principals: PrincipalTable
    /// `nil` unless there is an audit.
    let trail: AuditTrail?
    /// `nil` unless there is an audit.
    let undecided: UndecidedLines?
    /// Whether collaborations may be created whose proofs are signed over device nonces.
    let allowsNonces: Bool

    /// Queues the mutation that a request makes. `completion` is called once, when the mutation and its line are
    /// durable, or when it is refused.
    ///
    /// A repetition gets no line, because it changes nothing, unless the change that it repeats has none yet. Neither
    /// does an edit that is stale, because it is decided again.
    func submit(
        _ mutation: Mutation, for pending: PendingRequest,
        completion: @escaping @Sendable (Result<MutationReceipt, ServiceError>) -> Void
    ) {
        if !allowsNonces, mutation.change.createsNoncePolicy {
            return completion(
                .failure(
                    ServiceError(
                        .policyRefused,
                        "the services of a cluster don't know which device nonces the others have granted, so a "
                            + "collaboration with device nonces is only created where the operator has allowed it")))
        }
        guard let trail, let undecided else { return queue(mutation, of: pending, completion: completion) }
        var record = pending.auditRecord(mutation.change.changesPrincipals ? .key : .mutation)
        if case .edit(let edit) = mutation.change, mutation.change.changesPrincipals {
            record.detail = PrincipalRecords.summary(of: edit)
        }
        if let collaboration = mutation.change.collaboration { record.collaboration = "\(collaboration)" }
        let reservation: AuditTrail.Reservation?
        do throws(ServiceError) {
            reservation = try trail.reserve(record, isRemoval: !mutation.change.needsSpace)
        } catch {
            return completion(.failure(error))
        }
        // An optional audit has no room: the mutation goes on without a line.
        guard let reservation else { return queue(mutation, of: pending, completion: completion) }
        undecided.attemptBegins(mutation.identifier)
        let submission = Submission()
        queue(mutation, of: pending) { [record] result in
            var record = record
            record.sequence = undecided.attemptEnded(mutation.identifier, result, record, wasTried: !submission.goesOn)
            if case .failure(let error) = result, error.isWorthALine { record.outcome = error.code.name }
            guard record.sequence != nil || record.outcome != AuditRecord.done else {
                trail.withdraw(reservation)
                return completion(result)
            }
            trail.append(record, reservation) { failure in
                guard let failure, case .success = result else { return completion(result) }
                // The change was made. Its repetition is answered with its receipt when the audit can be written.
                let reason = "the change is made, but \(failure.reason)"
                completion(.failure(ServiceError(failure.code, detail: failure.detail, reason)))
            }
        }
        submission.hasEnded()
    }

    /// The call that hands a mutation to the queue. A mutation that it answers itself has not got there.
    private final class Submission: Sendable {
        private let thread = pthread_self()
        private let isOver = Lock(false)

        /// Whether this is called within it.
        var goesOn: Bool { pthread_equal(thread, pthread_self()) != 0 && !isOver.withLock { $0 } }

        func hasEnded() { isOver.withLock { $0 = true } }
    }

    private func queue(
        _ mutation: Mutation, of pending: PendingRequest,
        completion: @escaping @Sendable (Result<MutationReceipt, ServiceError>) -> Void
    ) {
        let changesPrincipals = mutation.change.changesPrincipals
        rootSets.submit(mutation, of: pending.mutationBegins(), isUrgent: pending.isUrgent) { [principals] result in
            pending.mutationEnded()
            // Also after an error: the change may have been made all the same.
            if changesPrincipals { principals.reload() }
            completion(result)
        }
    }
}

extension Change {
    /// Whether principals may be different afterwards.
    var changesPrincipals: Bool {
        if case .edit(let edit) = self { PrincipalRecords.areChanged(by: edit) } else { false }
    }

    /// Whether it creates a collaboration whose proofs are signed over device nonces.
    fileprivate var createsNoncePolicy: Bool {
        let policy: ProofPolicy? =
            switch self {
            case .createCollaboration(_, let policy): policy
            case .edit(let edit): edit.creation
            case .addRoots, .removeRoots, .dropCollaboration: nil
            }
        if case .deviceNonce = policy { return true }
        return false
    }
}

extension ServiceError {
    /// Whether a refused mutation is told in the audit. What is decided again or sent again is not.
    fileprivate var isWorthALine: Bool { !code.isTransient }

    /// Whether the error refuses what the sender's role or grant does not allow.
    var isRefusalByRole: Bool { code == .notPermitted || code == .grantRefused || code == .roleMissing }
}
