public import Core

/// Removes participants: their root hashes leave the set, their accounts are no longer linked, and all their grants are
/// revoked. The answer has their accounts. The owner can't be removed. The root hash of an identity that takes no part
/// leaves the set, too, if it was added without the layer.
public struct RemoveParticipants: RuledRequest {
    public static let name = "removeParticipants"
    public typealias Answer = MembershipReceipt

    public var collaboration: CollaborationIdentifier
    public var participants: [PersonIdentity]
    /// The grant of the participant who removes them or leaves; `nil`: the backend does.
    public var grant: AccessGrant?

    public init(
        _ participants: [PersonIdentity], from collaboration: CollaborationIdentifier, by grant: AccessGrant? = nil
    ) {
        self.collaboration = collaboration
        self.participants = participants
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try UpdateParticipants(of: collaboration, removing: participants, by: grant).decide(context, records)
    }
}
