public import Core

/// A page of a collaboration's invitations: those that are pending, or all.
public struct ListInvitations: RuledRequest {
    public static let name = "listInvitations"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        public let invitations: [Invitation]
        public let hasMore: Bool
    }

    public var collaboration: CollaborationIdentifier
    public var includesSettled: Bool
    /// The identifier of the last one of the page before.
    public var after: String?
    public var limit: Int

    public init(
        of collaboration: CollaborationIdentifier, includesSettled: Bool = false, after: String? = nil,
        limit: Int = 256
    ) {
        self.collaboration = collaboration
        self.includesSettled = includesSettled
        self.after = after
        self.limit = limit
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.invitationsPerPageMax)
        _ = try records.collaboration(collaboration)
        var range = RecordRange.beginning(with: RecordKeys.invitations(collaboration))
        if let after { range.start = RecordKeys.invitation(collaboration, try invitationName(after, "after")) + [0] }
        var invitations: [Invitation] = []
        while true {
            let page = try records.records(in: range, limit: limit + 1, isDescending: false)
            for record in page.items {
                let invitation = try record.decoded(StoredInvitation.self)
                    .invitation(Array(record.key.suffix(RecordKeys.invitationBytes)), collaboration, context)
                guard includesSettled || invitation.state == .pending else { continue }
                guard invitations.count < limit else {
                    return .answer(Answer(invitations: invitations, hasMore: true))
                }
                invitations.append(invitation)
            }
            guard page.hasMore, let last = page.items.last else {
                return .answer(Answer(invitations: invitations, hasMore: false))
            }
            range.start = last.key + [0]
        }
    }
}
