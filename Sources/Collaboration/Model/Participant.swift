public import Foundation

/// The state of a participant.
public enum ParticipantState: String, Hashable, Sendable, Codable, CaseIterable {
    case invited
    /// A proof of one of the person's devices was granted.
    case joined
    case removed
}

/// One person in a collaboration.
public struct Participant: Hashable, Sendable, Codable {
    public let identity: PersonIdentity
    public let displayName: String?
    public let role: ParticipantRole
    /// What the person may do now.
    public let permission: Permission
    /// Whether the permission is inherited from the collaboration's share options.
    public let followsShareOptions: Bool
    public let state: ParticipantState
    public let invitedAt: Date
    public let joinedAt: Date?
    public let removedAt: Date?
    /// The account that the person has been linked to.
    public let account: Account?
}

/// A participant to be added.
public struct NewParticipant: Hashable, Sendable, Codable {
    public var identity: PersonIdentity
    public var displayName: String?
    /// `nil`: member.
    public var role: ParticipantRole?
    /// `nil`: by the share options.
    public var permission: Permission?

    public init(
        _ identity: PersonIdentity, displayName: String? = nil, role: ParticipantRole? = nil,
        permission: Permission? = nil
    ) {
        self.identity = identity
        self.displayName = displayName
        self.role = role
        self.permission = permission
    }
}
