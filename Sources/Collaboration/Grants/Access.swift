package import Core

/// What a participant may do in a collaboration, as its records say.
package struct Access: Hashable, Sendable {
    package let permission: Permission
    package let role: ParticipantRole
    /// The mutation that last changed it: grants from before it are revoked.
    package let since: UInt64
    /// The version of the participant's own record.
    let version: UInt64
    /// The version of the collaboration's.
    let defaultVersion: UInt64

    /// The keys that it is read from: the collaboration's default permission, and the participant's access.
    package static func defaultPermissionKey(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        RecordKeys.defaultPermission(collaboration)
    }

    package static func key(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        RecordKeys.access(collaboration, person)
    }

    /// What the two records say together; `nil` when one of them is missing or damaged: then nothing is permitted.
    package init?(defaultPermission: StoredRecord?, record: StoredRecord?) {
        guard let defaultPermission, let record, defaultPermission.value.count == 1, record.value.count == 2,
            let role = ParticipantRole(code: record.value[1]),
            let permission = Permission(code: record.value[0] == 0 ? defaultPermission.value[0] : record.value[0])
        else { return nil }
        self.permission = permission
        self.role = role
        version = record.version
        defaultVersion = defaultPermission.version
        // Only who follows the share options is concerned when they change.
        since = record.value[0] == 0 ? max(record.version, defaultPermission.version) : record.version
    }

    /// The bytes of a participant's own record.
    static func bytes(role: ParticipantRole, permission: Permission?) -> [UInt8] {
        [permission?.code ?? 0, role.code]
    }
}

extension RecordReader where Self: ~Copyable {
    /// What the person may do in the collaboration; `nil`: nothing.
    package func access(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Access? {
        Access(
            defaultPermission: try record(RecordKeys.defaultPermission(collaboration)),
            record: try record(RecordKeys.access(collaboration, person)))
    }

    /// Who shows the grant, and what the person may do; `grantRefused` when it isn't worth anything there.
    func bearer(
        of grant: AccessGrant, in collaboration: CollaborationIdentifier, _ context: RuleContext
    ) throws(ServiceError) -> (person: PersonIdentity, access: Access) {
        func refusal(_ status: GrantStatus) -> ServiceError {
            ServiceError(
                .grantRefused, detail: UInt32(status.rawValue),
                "the grant is refused (\(status.name)): have the device prove itself again for another")
        }
        let claim: GrantClaim
        switch context.open(grant) {
        case .success(let genuine): claim = genuine
        case .failure(let failure): throw refusal(failure.status)
        }
        guard claim.collaboration == context.fingerprint(collaboration.description) else {
            throw refusal(.otherCollaboration)
        }
        let person = PersonIdentity(rootHash: claim.rootHash)
        guard let access = try access(of: person, in: collaboration), access.since <= claim.sequence,
            try isInSet(person, of: collaboration)
        else {
            throw refusal(.revoked)
        }
        return (person, access)
    }
}

extension Access {
    /// For an edit that counts on this access: it is stale when the access has changed meanwhile.
    package func expectations(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) -> [RecordEdit] {
        [
            .checking(RecordKeys.access(collaboration, person), expecting: .version(version)),
            .checking(RecordKeys.defaultPermission(collaboration), expecting: .version(defaultVersion)),
        ]
    }
}
