package import Core

/// Takes back an acceptance that no identity has come in by: the invitation is as if the account had not accepted it.
/// It is pending again, unless it was revoked or has expired. Only the account is forgotten then. Withdrawing again
/// changes nothing.
public struct WithdrawAcceptance: RuledRequest {
    public static let name = "withdrawAcceptance"
    public typealias Answer = ChangeReceipt

    public var token: InvitationToken
    /// The account that has accepted.
    public var account: Account

    public init(_ token: InvitationToken, for account: Account) {
        self.token = token
        self.account = account
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard let found = try records.invitation(token, context) else {
            throw ServiceError(.unknownInvitation, "no invitation has that token")
        }
        var stored = found.invitation.value
        guard let accepter = stored.acceptedBy else { return .noted(found.identifier, [found.unchanged]) }
        guard accepter == account else {
            throw ServiceError(.notPermitted, "another account has accepted the invitation")
        }
        guard stored.identity == nil else {
            throw ServiceError(
                .notPermitted, "an identity of \(account) came in by the invitation: remove the participant instead")
        }
        (stored.acceptedBy, stored.acceptedAt) = (nil, nil)
        var edit = Edit(found.identifier)
        edit.records = [try found.writing(stored)]
        return .change(edit, topics: [], count: 1)
    }
}
