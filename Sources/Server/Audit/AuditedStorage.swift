import Audit
import Collaboration
import Core
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
        let earlier = undecided.take(mutation.identifier)
        queue(mutation, of: pending) { [record] result in
            var record = record
            switch result {
            case .success(let receipt) where !receipt.isRepeat:
                undecided.made(receipt.sequence)
                record.sequence = receipt.sequence
            case .success(let receipt) where earlier.map({ receipt.sequence > $0.reached }) == true:
                record.sequence = receipt.sequence
            case .failure(let error) where error.isWorthALine:
                if error.leavesUndecided { undecided.note(mutation.identifier, record, earlier: earlier) }
                record.outcome = error.code.name
            case .success, .failure:
                if let earlier, case .failure = result {
                    undecided.note(mutation.identifier, record, earlier: earlier)
                }
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
