import Collaboration
import Core
import Hashing
import RootSets
import Wire

extension CollaborationLayer {
    /// Checks a batch of grants on a worker.
    ///
    /// Throws `busy`.
    func check(
        _ batch: GrantBatch, _ pending: PendingRequest, _ patience: LaggingRequests.Patience = .init()
    ) throws(ServiceError) {
        pending.begin(.queued)
        let isTaken = pool.submit(from: pending.source) { [self] in
            pending.begin(.working)
            do throws(ServiceError) {
                var answers: [UInt8] = []
                let moment = resources.rootSets.moment
                try append(checksOf: batch, to: &answers)
                try resources.rootSets.checkFresh(moment)
                pending.answer { $0.append(contentsOf: answers) }
            } catch {
                pending.fail(error, lacking: .someChange, unlessKeptBy: lagging, patience) { () throws(ServiceError) in
                    try self.check(batch, pending, patience)
                }
            }
        }
        guard isTaken else { throw Admission.busy }
    }

    /// Appends the body of the answer. All grants are checked on one snapshot. Checking a grant allocates nothing.
    ///
    /// Throws `behindSequence`, `limitExceeded` when the selected options are too long, or what the storage throws.
    func append(checksOf batch: GrantBatch, to bytes: inout [UInt8]) throws(ServiceError) {
        let start = bytes.count
        let end = start + 8 + batch.count * GrantAnswer.byteCount
        bytes.reserveCapacity(end)
        bytes.appendInteger(UInt32(batch.count))
        bytes.appendInteger(UInt32(0))
        try resources.rootSets.read { snapshot throws(ServiceError) in
            let last = try snapshot.lastSequence()
            try checkSequence(batch.atLeast, last: last)
            var lookups: [AccessLookup] = []
            lookups.reserveCapacity(batch.collaborations.count)
            let grantsEach = max(1, batch.count / max(1, batch.collaborations.count))
            for collaboration in batch.collaborations {
                lookups.append(try AccessLookup(collaboration, lookups: grantsEach, snapshot))
            }
            try grants.withTagChecker { checker throws(ServiceError) in
                for start in stride(from: 0, to: batch.count, by: TagChecker.capacity) {
                    let range = start..<min(start + TagChecker.capacity, batch.count)
                    try append(
                        range, of: batch, &lookups, checker, lastSequence: lagging == nil ? nil : last, in: snapshot,
                        to: &bytes)
                }
            }
            precondition(bytes.count == end, "a check answers another number of grants than it was asked for")
            if batch.wantsOptions { try appendOptions(of: batch, lookups, from: start, in: snapshot, to: &bytes) }
        }
    }

    /// Appends the selected options of each of the batch's collaborations for which one of its grants is valid. The
    /// results of the checks begin 8 bytes behind `start`.
    private func appendOptions(
        of batch: GrantBatch, _ lookups: [AccessLookup], from start: Int, in snapshot: borrowing Snapshot,
        to bytes: inout [UInt8]
    ) throws(ServiceError) {
        var isShown = [Bool](repeating: false, count: lookups.count)
        batch.withBytes { entries in
            for index in 0..<batch.count
            where bytes[start + 8 + index * GrantAnswer.byteCount] == GrantStatus.valid.rawValue {
                isShown[GrantBatch.entry(index, in: entries).collaboration] = true
            }
        }
        for (place, lookup) in lookups.enumerated() {
            try OptionLists.append(
                isShown[place] ? try lookup.selectedOptions(in: snapshot) : SelectedOptions.none, to: &bytes)
        }
    }

    /// Appends the answers to a range of grants, at most as many as `checker` takes at once. `lookups`: one for
    /// each of the batch's collaborations, in their order.
    private func append(
        _ range: Range<Int>, of batch: GrantBatch, _ lookups: inout [AccessLookup], _ checker: TagChecker,
        lastSequence: UInt64?, in snapshot: borrowing Snapshot, to bytes: inout [UInt8]
    ) throws(ServiceError) {
        let now = grants.now
        try batch.withBytes { lent throws(ServiceError) in
            guard let base = lent.baseAddress else { return }
            // Valid until the checker's next call.
            let areGenuine = checker.check(range.count) { base + GrantBatch.grantOffset(range.lowerBound + $0) }
            for index in range {
                let entry = GrantBatch.entry(index, in: lent)
                let place = entry.collaboration
                let presentation = GrantPresentation(
                    collaboration: lookups[place].fingerprint, defaultPermission: lookups[place].defaultPermission,
                    deviceKey: entry.deviceKey.map { Fingerprint(at: $0) }, now: now, lastSequence: lastSequence)
                let isGenuine = areGenuine[index - range.lowerBound]
                let finding = try presentation.check(entry.grant, isGenuine: isGenuine) {
                    person throws(ServiceError) in
                    try lookups[place].own(person, in: snapshot)
                } isMember: { person throws(ServiceError) in
                    try lookups[place].isMember(person, in: snapshot)
                }
                answer(to: finding).append(to: &bytes)
            }
        }
    }

    private func answer(to finding: GrantFinding) -> GrantAnswer {
        switch finding {
        case .refused(let status): GrantAnswer(status: status.rawValue)
        case .valid(_, let access, let millisecondsLeft):
            GrantAnswer(
                status: GrantStatus.valid.rawValue, permission: access.permission.code, role: access.role.code,
                millisecondsLeft: UInt32(clamping: millisecondsLeft))
        }
    }
}
