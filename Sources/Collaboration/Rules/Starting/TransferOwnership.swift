public import Core

/// Hands the collaboration over to a participant who has joined and is linked to an account. That account is the
/// owner's from then on. The former owner goes on as a member who may write.
public struct TransferOwnership: RuledRequest {
    public static let name = "transferOwnership"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// The account that owns the collaboration.
    public var owner: Account
    /// The participant who becomes the owner.
    public var identity: PersonIdentity
    /// What the new owner's account calls the content; `nil`: what the former owner's called it.
    public var localIdentifier: LocalCollaborationIdentifier?

    public init(
        of collaboration: CollaborationIdentifier, from owner: Account, to identity: PersonIdentity,
        localIdentifier: LocalCollaborationIdentifier? = nil
    ) {
        self.collaboration = collaboration
        self.owner = owner
        self.identity = identity
        self.localIdentifier = localIdentifier
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        if let localIdentifier { try checkName(localIdentifier.rawValue, "localIdentifier") }
        let found = try records.ownedCollaboration(collaboration, by: owner)
        let heir = try records.participant(identity, in: collaboration)
        guard heir.value.role != .owner else {
            throw ServiceError(.notPermitted, "\(identity.rootHash) is the owner of \(collaboration) already")
        }
        guard let joined = try records.record(RecordKeys.joining(collaboration, identity)),
            let account = try records.account(of: identity, in: collaboration)
        else {
            throw ServiceError(
                .notPermitted, "a new owner has joined and is linked to an account: link one with linkAccount")
        }
        guard try records.isInSet(identity, of: collaboration) else {
            throw ServiceError(
                .notPermitted, "the root hash \(identity.rootHash) was taken out of the set: its proofs are refused")
        }
        var stored = found.value
        stored.initiator = stored.initiator ?? owner
        stored.owner = account
        stored.formerOwners = try formerOwners(without: account, found.value, records)
        try checkLimit(stored.formerOwners.count, Limits.formerOwnersMax, "former owners")
        stored.ownerIdentity = identity
        stored.localIdentifier = localIdentifier ?? stored.localIdentifier
        var edit = Edit(collaboration)
        edit.records = [
            try .json(RecordKeys.collaboration(collaboration), stored, expecting: .version(found.version)),
            .checking(RecordKeys.joining(collaboration, identity), expecting: .version(joined.version)),
            .checking(
                RecordKeys.link(collaboration, identity),
                expecting: try records.linkExpectation(of: identity, in: collaboration)),
        ]
        edit.records += try Ownership.raise(heir.value, identity, collaboration, version: heir.version)
        if let former = found.value.ownerIdentity {
            try demote(former, &edit, records)
        }
        try moveStart(from: found.value, to: stored, &edit, records)
        return .change(edit, topics: Array(Topic.changed(by: edit)), count: 1)
    }

    /// The accounts that have handed the collaboration over by then, and still take part. Those whose share was removed
    /// with their identities don't count any more.
    private func formerOwners(
        without heir: Account, _ before: StoredCollaboration, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> [Account] {
        var former: [Account] = []
        for account in before.formerOwners where account != heir && account != owner {
            if try records.record(RecordKeys.accepted(account, collaboration)) != nil { former.append(account) }
        }
        return heir == owner ? former : former + [owner]
    }

    /// The former owner becomes a member, and goes on belonging to the former owner's account. So the collaboration
    /// becomes one of the shares that this account takes part in; removing the member ends that.
    private func demote(
        _ former: PersonIdentity, _ edit: inout Edit, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        let known = try records.participant(former, in: collaboration)
        var member = known.value
        member.role = .member
        edit.records += try member.changeRecords(
            of: former, in: collaboration, version: known.version, changesAccess: true)
        var share = try records.share(of: owner, in: collaboration)
        try share.add(former)
        edit.records += [
            share.writing,
            RecordEdit(RecordKeys.acceptance(collaboration, former), value: Array(owner.name.utf8)),
        ]
    }

    /// The start moves to the new owner's account: the former one can neither find nor abandon the collaboration by it.
    ///
    /// Throws `notPermitted` when the new owner's account has other content of that name.
    private func moveStart(
        from before: StoredCollaboration, to stored: StoredCollaboration, _ edit: inout Edit,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        let (old, new) = (
            RecordKeys.start(before.owner, before.localIdentifier),
            RecordKeys.start(stored.owner, stored.localIdentifier)
        )
        guard old != new else { return }
        guard try records.record(new) == nil else {
            throw ServiceError(
                .notPermitted,
                "\(stored.owner) has started other content of that name: give another localIdentifier")
        }
        edit.records += [
            RecordEdit(old, value: nil), RecordEdit(new, value: collaboration.utf8, expecting: .absent),
        ]
    }
}
