public import Foundation

/// What the holder of a token may know of an invitation before accepting it. With a refusal nothing else is given.
public struct InvitationPreview: Hashable, Sendable, Codable {
    public let token: InvitationToken
    /// `unknown`, `revoked`, `expired`, `closed` or `conflict` (who has come in by it takes part no longer); `nil` when
    /// there is something to tell.
    public let refusal: Acceptance.Refusal?
    public let state: InvitationState?
    /// The collaboration's title.
    public let title: String?
    /// Who invites, as it was said when the invitation was made.
    public let inviterName: String?
    public let inviterHandle: String?
    /// The accepter's role; `nil` when an identity has come in.
    public let role: ParticipantRole?
    /// What the accepter would be permitted now; `nil` when an identity has come in.
    public let permission: Permission?
    public let expiresAt: Date?

    private init(_ token: InvitationToken, refusal: Acceptance.Refusal) {
        self.token = token
        self.refusal = refusal
        (state, title, inviterName, inviterHandle) = (nil, nil, nil, nil)
        (role, permission, expiresAt) = (nil, nil, nil)
    }

    static func refused(_ token: InvitationToken, _ refusal: Acceptance.Refusal) -> InvitationPreview {
        InvitationPreview(token, refusal: refusal)
    }

    init(
        _ token: InvitationToken, state: InvitationState, title: String?, inviter: Inviter?, role: ParticipantRole?,
        permission: Permission?, expiresAt: Date?
    ) {
        self.token = token
        refusal = nil
        self.state = state
        self.title = title
        (inviterName, inviterHandle) = (inviter?.name, inviter?.handle)
        self.role = role
        self.permission = permission
        self.expiresAt = expiresAt
    }
}
