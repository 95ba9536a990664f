package import Core

extension RecordReader where Self: ~Copyable {
    /// What the person may do in the collaboration; `nil`: nothing.
    ///
    /// Throws `storageDamaged` when a record that says it is damaged.
    package func access(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Access? {
        let own = try OwnAccess(try record(OwnAccess.key(collaboration, person)))
        let defaultPermission = try DefaultPermission(try record(DefaultPermission.key(collaboration)))
        return Access(own, defaultPermission)
    }

    /// Checks a grant that is presented for the collaboration. The device is not checked.
    ///
    /// Throws `behindSequence`, and `storageDamaged` when a record that decides about the grant is damaged.
    func check(
        _ grant: AccessGrant, for collaboration: CollaborationIdentifier, _ context: RuleContext
    ) throws(ServiceError) -> GrantFinding {
        let presentation = GrantPresentation(
            collaboration: Fingerprint(context.sha256(collaboration.utf8)),
            defaultPermission: try DefaultPermission(try record(DefaultPermission.key(collaboration))),
            deviceKey: nil, now: context.grants.now, lastSequence: context.isShared ? try lastSequence() : nil)
        let isGenuine = context.grants.isGenuine(grant)
        return try grant.bytes.withRawBytes { bytes throws(ServiceError) in
            try presentation.check(bytes, isGenuine: isGenuine) { person throws(ServiceError) in
                try OwnAccess(try record(OwnAccess.key(collaboration, person)))
            } isMember: { person throws(ServiceError) in
                try isInSet(person, of: collaboration)
            }
        }
    }

    /// The person to whom the grant was issued, and the person's access.
    ///
    /// Throws `grantRefused` with the grant's status when it is not valid for the collaboration.
    func bearer(
        of grant: AccessGrant, in collaboration: CollaborationIdentifier, _ context: RuleContext
    ) throws(ServiceError) -> (person: PersonIdentity, access: Access) {
        switch try check(grant, for: collaboration, context) {
        case .valid(let person, let access, _): return (person, access)
        case .refused(let status):
            throw ServiceError(
                .grantRefused, detail: UInt32(status.rawValue),
                "the grant is refused (\(status.name)): send a new proof of the device to get another one")
        }
    }
}
