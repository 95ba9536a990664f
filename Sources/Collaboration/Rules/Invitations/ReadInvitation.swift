package import Core

/// What an invitation offers, by its token, before it is accepted: title, who invites, role, permission, expiry and
/// state. It tells nothing else of the collaboration. Of an invitation that is completed it tells title, who invites
/// and state, while the person who has come in by it takes part. If the token is unknown, revoked or expired, or nobody
/// may join now, or the person was removed, the answer is the refusal alone.
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
        let state = known.state(at: context.expiryTime)
        switch state {
        case .revoked: return .answer(.refused(token, .revoked))
        case .expired: return .answer(.refused(token, .expired))
        case .pending, .accepted:
            guard found.letsPeopleIn else { return .answer(.refused(token, .closed)) }
            return .answer(
                InvitationPreview(
                    token, state: state, title: found.collaboration.title, inviter: known.inviter, role: known.role,
                    permission: known.permission ?? found.collaboration.permission, expiresAt: known.expiresAt))
        case .completed:
            // Nobody gets a role or a permission by it any more.
            guard try records.accepter(of: found) != nil else { return .answer(.refused(token, .conflict)) }
            return .answer(
                InvitationPreview(
                    token, state: state, title: found.collaboration.title, inviter: known.inviter, role: nil,
                    permission: nil, expiresAt: nil))
        }
    }
}
