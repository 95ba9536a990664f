public import Core

/// Adds participants by their identities: all of them, or none when one of them is refused. Present participants are
/// not changed. Removed ones become participants again, with the state `invited`. A repetition adds nobody, also when
/// the first request has found all of them present.
public struct AddParticipants: RuledRequest {
    public static let name = "addParticipants"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var participants: [NewParticipant]
    /// The grant of the participant who adds them; `nil`: the backend does.
    public var grant: AccessGrant?

    public init(
        _ participants: [NewParticipant], to collaboration: CollaborationIdentifier, by grant: AccessGrant? = nil
    ) {
        self.collaboration = collaboration
        self.participants = participants
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLimit(participants.count, Limits.participantsPerRequestMax, "participants")
        let found = try records.collaboration(collaboration)
        let authority = try records.authority(of: grant, for: .addParticipants, in: collaboration, found, context)
        var membership = Membership(collaboration, found.value, by: authority)
        try membership.add(participants, "participants", context, records)
        guard !participants.isEmpty else { return .noted(collaboration, membership.edit.records) }
        return .change(membership.edit, topics: membership.topics, count: membership.count)
    }
}
