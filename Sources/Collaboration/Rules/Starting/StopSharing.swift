public import Core

/// Ends a collaboration: deletes its set, participants, notices and invitations, and revokes every grant.
public struct StopSharing: RuledRequest {
    public static let name = "stopSharing"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier

    public init(_ collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try .ending(collaboration, try records.collaboration(collaboration), records)
    }
}
