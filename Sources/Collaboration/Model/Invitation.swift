public import Core
public import Foundation

/// An invitation as its collaboration lists it. It does not contain the token, which only the invited person has.
public struct Invitation: Hashable, Sendable, Codable {
    /// Names the invitation, for revoking it: the first 16 bytes of the token's SHA-256, in hexadecimal.
    public let identifier: String
    public let collaboration: CollaborationIdentifier
    public let role: ParticipantRole
    /// What the accepter may do; `nil`: what the share options say.
    public let permission: Permission?
    public let state: InvitationState
    public let createdAt: Date
    public let expiresAt: Date?
    public let acceptedBy: Account?
    public let acceptedAt: Date?
    /// The identity that has come in by it, and when.
    public let identity: PersonIdentity?
    public let completedAt: Date?
    /// Who invites; `nil` when nobody was named.
    public let inviter: Inviter?
}
