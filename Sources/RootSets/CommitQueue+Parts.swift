import Core

// A removal for which no commit finds room, without a log record either. LMDB lists the pages that a commit frees in
// one value, so a commit that frees more than 510 needs neighbouring pages for the list. The free pages of a full
// storage may be scattered. A removal of many root hashes then takes several commits, each of which frees fewer.

extension CommitQueue {
    /// Root hashes of a part at first. They may be anywhere in a set, so the bucket of each and the next one are
    /// copied.
    private static let rootsPerPart = 128
    /// Those of a part of a whole set: they follow one another.
    private static let neighboursPerPart = 2048

    /// Commits a removal in several commits, and returns what came of it. Until the last one, readers find some of it
    /// removed. When it fails on the way, or the process ends, that stays so. An edit is never committed in parts,
    /// because its records must agree with each other and with the set: it gets `error`.
    func outcomeInParts(
        _ pending: WaitingMutation, after error: StorageFailure
    ) -> Result<MutationReceipt, ServiceError> {
        writer.assertIsCurrent()
        do throws(StorageFailure) {
            switch pending.mutation.change {
            case .removeRoots(let identifier, let roots):
                try emptyLog(identifier, for: pending.peer)
                var count = CommitQueue.rootsPerPart
                let removed = try remove(roots.sorted(), from: identifier, perPart: &count, for: pending.peer)
                return try commitPart(.removeRoots(identifier, []), for: pending.peer).map { last in
                    MutationReceipt(sequence: last.sequence, changed: removed, isRepeat: false)
                }
            case .dropCollaboration(let identifier):
                try emptyLog(identifier, for: pending.peer)
                try removeAll(from: identifier, for: pending.peer)
                return try commitPart(pending.mutation.change, for: pending.peer)
            case .edit: return .failure(refusal(error))
            case .createCollaboration, .addRoots: preconditionFailure("an addition is committed in parts")
            }
        } catch {
            return .failure(refusal(error))
        }
    }

    /// Removes what is left of the log. Its last record may have as many pages as a part.
    private func emptyLog(_ identifier: CollaborationIdentifier, for peer: Holder) throws(StorageFailure) {
        _ = try commitPart(.removeRoots(identifier, []), for: peer)
    }

    /// Removes all root hashes of a set.
    private func removeAll(from identifier: CollaborationIdentifier, for peer: Holder) throws(StorageFailure) {
        var count = CommitQueue.neighboursPerPart
        while true {
            let part = try storage.withTransaction { transaction throws(StorageFailure) in
                try? Snapshot(transaction, transaction.environment)
                    .roots(of: identifier, after: nil, limit: CommitQueue.neighboursPerPart)?.items
            }
            guard let part, !part.isEmpty, try remove(part, from: identifier, perPart: &count, for: peer) > 0
            else { return }
        }
    }

    /// Removes root hashes, which are in ascending order, in parts of `count`. A part that lacks space is halved, and
    /// so are those behind it. Returns how many there were.
    private func remove(
        _ roots: [Digest], from identifier: CollaborationIdentifier, perPart count: inout Int, for peer: Holder
    ) throws(StorageFailure) -> UInt64 {
        var removed: UInt64 = 0
        var start = 0
        while start < roots.count {
            let part = Array(roots[start...].prefix(count))
            do throws(StorageFailure) {
                if case .success(let receipt) = try commitPart(.removeRoots(identifier, part), for: peer) {
                    removed += receipt.changed
                }
                start += part.count
            } catch {
                guard error.isLackOfSpace, part.count > 1 else { throw error }
                count = part.count / 2
            }
        }
        return removed
    }

    /// Commits a part of a removal. If it lacks space, it is tried once more when the pages that the last commit has
    /// freed can be used.
    private func commitPart(
        _ change: Change, for peer: Holder
    ) throws(StorageFailure) -> Result<MutationReceipt, ServiceError> {
        noteWork()
        let part = WaitingMutation(
            mutation: Mutation(change), bytes: 1, peer: peer, isUrgent: true, completion: { _ in })
        do throws(StorageFailure) {
            return try attempt(part)
        } catch {
            guard error.isLackOfSpace else { throw error }
            try writing { environment throws(StorageFailure) in try commitNothing(environment) }
            return try attempt(part)
        }
    }

    /// Commits a removal alone, without a log record.
    private func attempt(_ part: WaitingMutation) throws(StorageFailure) -> Result<MutationReceipt, ServiceError> {
        var group = Group(part, now: surroundings.now)
        let results = try attempt(&group, isJoined: false, isLogged: false)
        guard let result = results.first, results.count == 1 else {
            preconditionFailure("a removal alone has not one result")
        }
        return result
    }
}
