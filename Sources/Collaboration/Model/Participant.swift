public import Foundation

/// Where a participant stands.
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
    /// Whether that follows the collaboration's share options, rather than having been said for this person.
    public let followsShareOptions: Bool
    public let state: ParticipantState
    public let invitedAt: Date
    public let joinedAt: Date?
    public let removedAt: Date?
    /// The account that the person has been linked to.
    public let account: Account?
}

/// Somebody to be let in.
public struct NewParticipant: Hashable, Sendable, Codable {
    public var identity: PersonIdentity
    public var displayName: String?
    /// A member, unless it is said.
    public var role: ParticipantRole?
    /// What the share options say, unless it is said.
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
