import Collaboration
import Core
import Hashing
import RootSets
import Wire

// Checks of grants: the tag of each, then what the participant's records say now. Nothing is allocated for a grant.

extension CollaborationLayer {
    /// Checks a batch of grants on a worker.
    ///
    /// Throws `busy`.
    func check(_ batch: GrantBatch, _ ticket: Ticket) throws(ServiceError) {
        let isTaken = pool.submit(from: ticket.source) { [self] in
            do throws(ServiceError) {
                var answers: [UInt8] = []
                try append(checksOf: batch, to: &answers)
                ticket.answer { $0.append(contentsOf: answers) }
            } catch {
                ticket.fail(error)
            }
        }
        guard isTaken else { throw Admission.busy }
    }

    /// Appends the body of the answer.
    func append(checksOf batch: GrantBatch, to bytes: inout [UInt8]) throws(ServiceError) {
        bytes.reserveCapacity(8 + batch.count * GrantAnswer.byteCount)
        bytes.appendInteger(UInt32(batch.count))
        bytes.appendInteger(UInt32(0))
        try gate.rootSets.read { snapshot throws(ServiceError) in
            if batch.atLeast > 0 { try checkSequence(batch.atLeast, last: try snapshot.lastSequence()) }
            var doors: [Door] = []
            doors.reserveCapacity(batch.collaborations.count)
            for collaboration in batch.collaborations { doors.append(try Door(collaboration, snapshot)) }
            try grants.withBatchAuthenticator { authenticator throws(ServiceError) in
                for start in stride(from: 0, to: batch.count, by: BatchAuthenticator.capacity) {
                    let range = start..<min(start + BatchAuthenticator.capacity, batch.count)
                    try append(range, of: batch, &doors, authenticator, in: snapshot, to: &bytes)
                }
            }
        }
    }

    private func append(
        _ range: Range<Int>, of batch: GrantBatch, _ doors: inout [Door], _ authenticator: BatchAuthenticator,
        in snapshot: borrowing Snapshot, to bytes: inout [UInt8]
    ) throws(ServiceError) {
        let now = grants.now
        // The tags are valid until the authenticator's next call, the batch's bytes while they are lent.
        let tags = batch.withBytes { lent in
            guard let base = lent.baseAddress else { return UnsafeBufferPointer<Digest>(start: nil, count: 0) }
            return authenticator.tags(of: range.count) { base + GrantBatch.grantOffset(range.lowerBound + $0) }
        }
        for index in range {
            let (door, status, claim) = batch.withEntry(index) { position, deviceKey, grant in
                judge(grant, tag: tags[index - range.lowerBound], deviceKey, at: doors[position], position, now)
            }
            guard let claim else {
                GrantAnswer(status: status.rawValue).append(to: &bytes)
                continue
            }
            guard let since = try doors[door].accessSince(of: claim.root, in: snapshot), since <= claim.sequence else {
                GrantAnswer(status: GrantStatus.revoked.rawValue).append(to: &bytes)
                continue
            }
            GrantAnswer(
                status: GrantStatus.valid.rawValue, permission: claim.permission, role: claim.role,
                millisecondsLeft: UInt32(clamping: claim.expiry - now)
            ).append(to: &bytes)
        }
    }

    /// The fields of a grant that a check needs, read without copying.
    private struct PackedClaim {
        let permission: UInt8
        let role: UInt8
        let expiry: UInt64
        let sequence: UInt64
        let root: Digest

        init(_ grant: UnsafeRawBufferPointer, _ base: UnsafeRawPointer) {
            permission = grant[1]
            role = grant[2]
            expiry = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            sequence = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
            root = Digest(at: base + 56)
        }
    }

    private func judge(
        _ grant: UnsafeRawBufferPointer, tag: Digest, _ deviceKey: UnsafeRawBufferPointer?, at door: Door,
        _ position: Int, _ now: UInt64
    ) -> (Int, GrantStatus, PackedClaim?) {
        guard grants.isGenuine(grant, tag: tag), grant[0] == 1, let base = grant.baseAddress else {
            return (position, .forged, nil)
        }
        let claim = PackedClaim(grant, base)
        guard now <= claim.expiry else { return (position, .expired, nil) }
        guard door.fingerprint == base.loadUnaligned(fromByteOffset: 24, as: UInt128.self) else {
            return (position, .otherCollaboration, nil)
        }
        if let deviceKey, !deviceKey.elementsEqual(UnsafeRawBufferPointer(rebasing: grant[40..<56])) {
            return (position, .otherDevice, nil)
        }
        return (position, .valid, claim)
    }

    /// A collaboration at which grants are shown, looked up once for a batch.
    private struct Door {
        /// As grants name it.
        let fingerprint: UInt128
        private let defaultPermission: (version: UInt64, permission: UInt8)?
        private let view: CollaborationView?
        private let identifier: CollaborationIdentifier
        /// The key of a participant's access; the root hash behind `prefixCount` is replaced for each.
        private var key: [UInt8]
        private let prefixCount: Int

        init(_ identifier: CollaborationIdentifier, _ snapshot: borrowing Snapshot) throws(ServiceError) {
            self.identifier = identifier
            fingerprint = SHA256.hash(identifier.utf8).withUnsafeBytes { $0.loadUnaligned(as: UInt128.self) }
            let record = try snapshot.record(Access.defaultPermissionKey(identifier))
            defaultPermission = record.flatMap { $0.value.count == 1 ? ($0.version, $0.value[0]) : nil }
            key = Access.key(identifier, PersonIdentity(rootHash: .zero))
            prefixCount = key.count - Digest.byteCount
            view = try identifier.utf8.withRawBytes { name throws(ServiceError) in try snapshot.collaboration(name) }
        }

        /// The mutation since which the person may do what it may do; `nil`: nothing. As `Access` has it.
        mutating func accessSince(of root: Digest, in snapshot: borrowing Snapshot) throws(ServiceError) -> UInt64? {
            guard let defaultPermission, let view else { return nil }
            let prefixCount = prefixCount
            key.withUnsafeMutableBytes { key in
                if let base = key.baseAddress { root.store(to: base + prefixCount) }
            }
            let found = try key.withRawBytes { key throws(ServiceError) -> (UInt64, UInt8)? in
                try snapshot.withRecord(key) { version, value in (version, value.count == 2 ? value[0] : .max) }
            }
            guard let (version, permission) = found, permission != .max else { return nil }
            // A root hash that was taken out of the set past the layer is out all the same.
            let isMember = try identifier.utf8.withRawBytes { _ throws(ServiceError) in
                try snapshot.contains(root, in: view)
            }
            guard isMember else { return nil }
            return permission == 0 ? max(version, defaultPermission.version) : version
        }
    }
}
