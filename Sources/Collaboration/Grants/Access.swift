package import Core

/// What a participant may do in a collaboration: the participant's record and the collaboration's default together.
package struct Access: Hashable, Sendable {
    package let permission: Permission
    package let role: ParticipantRole
    /// The sequence of the mutation that changed the access last.
    package let since: UInt64
    private let ownVersion: UInt64
    private let defaultVersion: UInt64

    /// `nil` when one of the records is missing: then nothing is permitted.
    package init?(_ own: OwnAccess?, _ defaultPermission: DefaultPermission?) {
        guard let own, let defaultPermission else { return nil }
        role = own.role
        ownVersion = own.version
        defaultVersion = defaultPermission.version
        if let permission = own.permission {
            self.permission = permission
            since = own.version
        } else {
            // A participant without a permission of his own inherits the share options; changing those revokes his
            // grants.
            permission = defaultPermission.permission
            since = max(own.version, defaultPermission.version)
        }
        assert(since >= own.version, "access is older than the record that gives it")
    }

    /// The rule of revocation. Returns the access of a person with a grant that was issued at `sequence`, or `nil` when
    /// that grant is revoked. A grant is revoked when the person has no access, when the access was changed after
    /// `sequence`, or when the person's root hash is no longer in the collaboration's set.
    ///
    /// `isMember` tells whether the root hash is in the set. It is called only when the other conditions hold.
    ///
    /// Throws what `isMember` throws.
    package static func unlessRevoked(
        _ own: OwnAccess?, _ defaultPermission: DefaultPermission?, grantedAt sequence: UInt64,
        isMember: () throws(ServiceError) -> Bool
    ) throws(ServiceError) -> Access? {
        guard let access = Access(own, defaultPermission), access.since <= sequence, try isMember() else { return nil }
        return access
    }

    /// Makes an edit stale when the access has changed since it was read.
    package func expectations(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) -> [RecordEdit] {
        [
            .checking(OwnAccess.key(collaboration, person), expecting: .version(ownVersion)),
            .checking(DefaultPermission.key(collaboration), expecting: .version(defaultVersion)),
        ]
    }
}
