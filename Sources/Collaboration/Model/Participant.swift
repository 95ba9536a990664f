public import Foundation

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
    /// The account that the person is linked to; of a removed participant the account that the removal concerned.
    public let account: Account?
}
