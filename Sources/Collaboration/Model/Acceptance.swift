public import Core

/// The result of accepting one invitation.
public struct Acceptance: Hashable, Sendable, Codable {
    /// Why an invitation can't be accepted.
    public enum Refusal: String, Hashable, Sendable, Codable, CaseIterable {
        case unknown, revoked, expired
        /// Another account has accepted it.
        case used
        /// The selected share options don't let people come in by invitations.
        case closed
        /// The identity was removed from the collaboration, is linked to another account, or is not the one that has
        /// come in by this invitation.
        case conflict
    }

    /// How far an acceptance is.
    public enum State: String, Hashable, Sendable, Codable, CaseIterable {
        /// The account is known, and no identity yet: accepting again with an identity completes it.
        case accepted
        /// The identity takes part.
        case `in`
    }

    public let token: InvitationToken
    /// `nil` when the invitation was accepted, now or before.
    public let refusal: Refusal?
    /// `nil` when it was refused.
    public let state: State?
    /// The collaboration, for which the device derives its identity; `nil` when it was refused.
    public let collaborationIdentifier: CollaborationIdentifier?
    /// The share, once the identity takes part.
    public let share: CollaborationHighlight?

    private init(
        _ token: InvitationToken, refusal: Refusal? = nil, state: State? = nil,
        collaborationIdentifier: CollaborationIdentifier? = nil, share: CollaborationHighlight? = nil
    ) {
        self.token = token
        self.refusal = refusal
        self.state = state
        self.collaborationIdentifier = collaborationIdentifier
        self.share = share
    }

    static func refused(_ token: InvitationToken, _ refusal: Refusal) -> Acceptance {
        Acceptance(token, refusal: refusal)
    }

    static func accepted(_ token: InvitationToken, _ collaboration: CollaborationIdentifier) -> Acceptance {
        Acceptance(token, state: .accepted, collaborationIdentifier: collaboration)
    }

    static func takesPart(_ token: InvitationToken, _ share: CollaborationHighlight) -> Acceptance {
        Acceptance(token, state: .in, collaborationIdentifier: share.collaborationIdentifier, share: share)
    }
}
