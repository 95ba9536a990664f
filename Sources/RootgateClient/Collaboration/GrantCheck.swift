public import Collaboration
public import Core

/// A grant to be checked, with the collaboration and the device that it is presented for.
public struct GrantCheck: Hashable, Sendable {
    /// The presented grant.
    public var grant: AccessGrant
    /// The collaboration that the grant is presented for.
    public var collaboration: CollaborationIdentifier
    /// The device that presents the grant: the first 16 bytes of the SHA-256 of its public key, as the device sends the
    /// key. `nil` when the caller does not know the device; then the device is not checked.
    public var deviceKey: [UInt8]?

    /// A grant that is presented for a collaboration.
    public init(_ grant: AccessGrant, in collaboration: CollaborationIdentifier, deviceKey: [UInt8]? = nil) {
        self.grant = grant
        self.collaboration = collaboration
        self.deviceKey = deviceKey
    }
}

/// The result of checking one grant.
public struct GrantDecision: Hashable, Sendable {
    /// Whether the grant holds now, and if not, why.
    public let status: GrantStatus
    /// What the bearer may do. This and the following values are `nil` when the grant is refused.
    public let permission: Permission?
    /// The bearer's role.
    public let role: ParticipantRole?
    /// How long the grant stays valid unless it is revoked.
    public let timeLeft: Duration?
    /// Identifiers of the share options that are selected in the collaboration, if they were asked for.
    public let selectedOptions: [String]?
}
