public import Collaboration
public import Core

/// A grant to be checked, with the collaboration and the device that it is shown for.
public struct GrantCheck: Hashable, Sendable {
    public var grant: AccessGrant
    public var collaboration: CollaborationIdentifier
    /// The first 16 bytes of the SHA-256 of the public key of the device that shows it, as the device sends the key;
    /// `nil` when the caller does not know the device.
    public var deviceKey: [UInt8]?

    public init(_ grant: AccessGrant, in collaboration: CollaborationIdentifier, deviceKey: [UInt8]? = nil) {
        self.grant = grant
        self.collaboration = collaboration
        self.deviceKey = deviceKey
    }
}

/// The result of checking one grant.
public struct GrantDecision: Hashable, Sendable {
    public let status: GrantStatus
    /// What the bearer may do. This and the following values are `nil` when the grant is refused.
    public let permission: Permission?
    public let role: ParticipantRole?
    public let timeLeft: Duration?
}
