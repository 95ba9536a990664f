/// The state of an invitation.
public enum InvitationState: String, Hashable, Sendable, Codable, CaseIterable {
    case pending
    /// An account has accepted it, but no identity of the account has come in yet.
    case accepted
    /// An identity has come in by it. The invitation stays completed when that participant is removed.
    case completed
    case revoked
    /// Nobody has come in by it in time.
    case expired
}
