package import Core

/// What an invitation offers, by its token, before it is accepted: title, who invites, role, permission, expiry and
/// state. It tells nothing else of the collaboration. Of a token that is unknown, revoked or expired, or by which
/// nobody may come in now, the answer has that refusal and nothing else.
public struct ReadInvitation: RuledRequest {
    public static let name = "readInvitation"
    package static let isQuery = true
    public typealias Answer = InvitationPreview

    public var token: InvitationToken

    public init(_ token: InvitationToken) {
        self.token = token
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard let found = try records.invitation(token, context) else { return .answer(.refused(token, .unknown)) }
        let known = found.invitation.value
        let state = known.state(at: context.now)
        switch state {
        case .revoked: return .answer(.refused(token, .revoked))
        case .expired: return .answer(.refused(token, .expired))
        case .pending, .accepted:
            guard found.collaboration.shareOptions.allows(.joinByInvitation) != false else {
                return .answer(.refused(token, .closed))
            }
        case .completed: break
        }
        return .answer(
            InvitationPreview(
                token, state: state, title: found.collaboration.title, inviter: known.inviter, role: known.role,
                permission: known.permission ?? found.collaboration.permission,
                expiresAt: known.expiresAt))
    }
}
