public import Core

/// Ends a collaboration: deletes its set, participants, notices and invitations, and revokes every grant.
public struct StopSharing: RuledRequest {
    public static let name = "stopSharing"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// The grant of the owner who stops the sharing; `nil`: the backend does.
    public var grant: AccessGrant?

    public init(_ collaboration: CollaborationIdentifier, by grant: AccessGrant? = nil) {
        self.collaboration = collaboration
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let found = try records.collaboration(collaboration)
        _ = try records.authority(of: grant, for: .stopSharing, in: collaboration, found, context)
        return try .ending(collaboration, found, records)
    }
}
