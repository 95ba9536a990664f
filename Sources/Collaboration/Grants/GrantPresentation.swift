package import Core

/// The circumstances under which a grant is presented: for which collaboration, by which device, and when.
package struct GrantPresentation: Sendable {
    /// The collaboration that the grant is shown for.
    private let collaboration: Fingerprint
    /// The default permission of that collaboration; `nil` when it was not started by this layer, or was stopped.
    private let defaultPermission: DefaultPermission?
    /// The key of the device that shows the grant; `nil` when the device is not known.
    private let deviceKey: Fingerprint?
    /// The present time on the clock by which grants expire, in milliseconds.
    private let now: UInt64
    /// The sequence of the last change that is known here, where others issue grants, too; `nil`: nobody else does.
    private let lastSequence: UInt64?

    /// The longest validity of a grant, in milliseconds. One that would be valid longer was issued while the clock was
    /// ahead.
    private static let validityMax = UInt64(Limits.validitySecondsMax) * 1000

    package init(
        collaboration: Fingerprint, defaultPermission: DefaultPermission?, deviceKey: Fingerprint?, now: UInt64,
        lastSequence: UInt64? = nil
    ) {
        self.collaboration = collaboration
        self.defaultPermission = defaultPermission
        self.deviceKey = deviceKey
        self.now = now
        self.lastSequence = lastSequence
    }

    /// Checks a grant; every check of a grant calls this function. The order of the checks is: tag, version, expiry,
    /// collaboration, device, rule of revocation. The first one that fails gives the status. Allocates nothing.
    ///
    /// `isGenuine`: whether the grant's tag is right. `own` reads a person's record. `isMember` tells whether a root
    /// hash is in the collaboration's set. Both are called at most once, for the person whom the grant names.
    ///
    /// Throws what `own` and `isMember` throw, and `behindSequence` when the grant is newer than what is known here.
    package func check(
        _ grant: UnsafeRawBufferPointer, isGenuine: Bool,
        own: (PersonIdentity) throws(ServiceError) -> OwnAccess?,
        isMember: (PersonIdentity) throws(ServiceError) -> Bool
    ) throws(ServiceError) -> GrantFinding {
        guard isGenuine, let claim = GrantClaim(grant) else { return .refused(.forged) }
        guard now <= claim.expiry, claim.expiry - now <= GrantPresentation.validityMax else {
            return .refused(.expired)
        }
        guard claim.collaboration == collaboration else { return .refused(.otherCollaboration) }
        if let deviceKey, claim.deviceKey != deviceKey { return .refused(.otherDevice) }
        if let lastSequence { try checkSequence(claim.sequence, last: lastSequence) }
        let person = PersonIdentity(rootHash: claim.rootHash)
        let access = try Access.unlessRevoked(try own(person), defaultPermission, grantedAt: claim.sequence) {
            () throws(ServiceError) in try isMember(person)
        }
        guard let access else { return .refused(.revoked) }
        return .valid(person, access, millisecondsLeft: claim.expiry - now)
    }
}

/// The result of checking one grant.
package enum GrantFinding: Equatable, Sendable {
    /// The grant is valid: it belongs to this person, who has this access.
    case valid(PersonIdentity, Access, millisecondsLeft: UInt64)
    /// Never `valid`.
    case refused(GrantStatus)
}
