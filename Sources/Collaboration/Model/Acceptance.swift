/// The result of accepting one invitation.
public struct Acceptance: Hashable, Sendable, Codable {
    /// Why an invitation can't be accepted.
    public enum Refusal: String, Hashable, Sendable, Codable, CaseIterable {
        case unknown, revoked, expired
        /// Another account has accepted it.
        case used
        /// The accepter's identity was removed from the collaboration, or is linked to another account.
        case conflict
    }

    public let token: InvitationToken
    /// `nil` when the share was accepted, now or before.
    public let refusal: Refusal?
    public let share: CollaborationHighlight?
}
