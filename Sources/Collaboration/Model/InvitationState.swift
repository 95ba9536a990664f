/// The state of an invitation.
public enum InvitationState: String, Hashable, Sendable, Codable, CaseIterable {
    case pending, accepted, revoked, expired
}
