public import Core

/// Revokes an invitation by which no identity has come in. An acceptance without an identity ends with it. Revoking it
/// again changes nothing.
public struct RevokeInvitation: RuledRequest {
    public static let name = "revokeInvitation"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var identifier: String

    public init(_ identifier: String, of collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.identifier = identifier
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let key = RecordKeys.invitation(collaboration, try invitationName(identifier))
        _ = try records.collaboration(collaboration)
        guard let known = try records.load(StoredInvitation.self, at: key) else {
            throw ServiceError(.unknownInvitation, "\(collaboration) has no invitation \(identifier)")
        }
        guard known.value.identity == nil else {
            throw ServiceError(
                .notPermitted, "an identity came in by the invitation: remove the participant instead")
        }
        guard !known.value.isRevoked else {
            return .noted(collaboration, [.checking(key, expecting: .version(known.version))])
        }
        var stored = known.value
        stored.isRevoked = true
        var edit = Edit(collaboration)
        edit.records = [try .json(key, stored, expecting: .version(known.version))]
        return .change(edit, topics: [], count: 1)
    }
}
