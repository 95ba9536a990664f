public import Core

/// Makes an identity the owner among the participants: the owner's account says once as whom it takes part. Repeating
/// the request changes nothing.
public struct ClaimOwnership: RuledRequest {
    public static let name = "claimOwnership"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// The account that has started the collaboration, or to which it was handed over.
    public var owner: Account
    public var identity: PersonIdentity
    /// The owner's name in notices; `nil`: the initiator's, or the name of the participant who becomes the owner.
    public var displayName: String?

    public init(
        of collaboration: CollaborationIdentifier, by owner: Account, as identity: PersonIdentity,
        displayName: String? = nil
    ) {
        self.collaboration = collaboration
        self.owner = owner
        self.identity = identity
        self.displayName = displayName
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try check(displayName, "displayName")
        let found = try records.ownedCollaboration(collaboration, by: owner)
        var stored = found.value
        var edit = Edit(collaboration)
        try Ownership.add(
            identity, named: displayName ?? stored.initiatorName, to: &stored, collaboration,
            &edit, context, records)
        let key = RecordKeys.collaboration(collaboration)
        guard stored != found.value else {
            return .remembered(collaboration, [.checking(key, expecting: .version(found.version))])
        }
        edit.records.append(try .json(key, stored, expecting: .version(found.version)))
        return .change(edit, topics: [.collaboration(collaboration)], count: 1)
    }
}

extension RecordReader where Self: ~Copyable {
    /// The collaboration, if it belongs to the account.
    ///
    /// Throws `unknownCollaboration`, or `notPermitted` when it belongs to another account.
    func ownedCollaboration(
        _ identifier: CollaborationIdentifier, by owner: Account
    ) throws(ServiceError) -> Loaded<StoredCollaboration> {
        let found = try collaboration(identifier)
        guard found.value.owner == owner else {
            throw ServiceError(.notPermitted, "\(owner) is not the account that owns \(identifier)")
        }
        return found
    }
}
