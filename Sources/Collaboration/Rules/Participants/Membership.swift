import Core

/// People who join and leave a collaboration in one edit. Removals come first, then additions.
struct Membership {
    private(set) var edit: Edit
    /// The topics of which the edit changes something.
    var topics: [Topic] { count > 0 ? [.collaboration(collaboration)] + accounts : [] }
    private var accounts: [Topic] = []
    /// The accounts of people who leave.
    private var leavers: Set<Account> = []
    private let collaboration: CollaborationIdentifier
    /// The permission of those who have none of their own.
    private let byOptions: Permission
    private let authority: ManagingAuthority

    /// The number of people who join or leave, and of root hashes without a participant that are removed.
    var count: Int { edit.addedRoots.count + edit.removedRoots.count }

    init(_ collaboration: CollaborationIdentifier, _ stored: StoredCollaboration, by authority: ManagingAuthority) {
        self.collaboration = collaboration
        byOptions = stored.permission
        self.authority = authority
        edit = Edit(collaboration)
        edit.records = authority.expectations(in: collaboration)
    }

    /// Adds those who take no part yet; leaves the others as they are. `field`: the request's field that names them.
    ///
    /// Throws `notPermitted`, `limitExceeded`, `malformedRequest` when a person is named twice with other values.
    mutating func add(
        _ participants: [NewParticipant], _ field: String, _ context: RuleContext,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        var seen: [PersonIdentity: NewParticipant] = [:]
        for (index, participant) in participants.enumerated() {
            if let first = seen.updateValue(participant, forKey: participant.identity) {
                guard first == participant else {
                    throw ServiceError(
                        .malformedRequest, "\(field)[\(index)] is a person of the list again, with other values")
                }
                continue
            }
            guard participant.role != .owner else { throw ServiceError.oneOwner }
            try check(participant.displayName, "\(field)[\(index)].displayName")
            try authority.checkGiving(role: participant.role, permission: participant.permission ?? byOptions)
            let known = try records.load(
                StoredParticipant.self, at: RecordKeys.participant(collaboration, participant.identity))
            if let known, known.value.removedAt == nil {
                edit.records.append(
                    .checking(
                        RecordKeys.participant(collaboration, participant.identity), expecting: .version(known.version))
                )
                continue
            }
            edit.addedRoots.append(participant.identity.rootHash)
            edit.records += try StoredParticipant.records(
                of: participant, in: collaboration, at: context.now, replacing: known, by: authority.bearer)
        }
        if !edit.addedRoots.isEmpty { edit.records.append(RecordEdit(RecordKeys.arrivals(collaboration), value: [])) }
    }

    /// Removes those who take part, and root hashes that are in the set without a participant. Returns everybody among
    /// `people` who takes no part afterwards and took part once, with the account concerned.
    ///
    /// Throws `notPermitted`.
    mutating func remove(
        _ people: [PersonIdentity], _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> [RemovedParticipant] {
        let leaving = Set(people)
        var removed: [RemovedParticipant] = []
        var seen: Set<PersonIdentity> = []
        for person in people where seen.insert(person).inserted {
            let key = RecordKeys.participant(collaboration, person)
            let found = try records.load(StoredParticipant.self, at: key)
            guard let known = found, known.value.removedAt == nil else {
                try removeBare(person, found, records)
                if let found {
                    removed.append(RemovedParticipant(identity: person, account: found.value.formerAccount))
                }
                continue
            }
            guard known.value.role != .owner else {
                throw ServiceError(
                    .notPermitted, "the owner can't be removed: hand the ownership over first, or stop sharing")
            }
            try authority.checkRemoving(person, role: known.value.role)
            let account = try remove(person, known, leaving: leaving, context, records)
            removed.append(RemovedParticipant(identity: person, account: account))
        }
        return removed
    }

    /// Takes the root hash of a person who takes no part out of the set, if it is there: it was added without the
    /// layer. `known`: the record of a person who was removed earlier; `nil` when there is none.
    ///
    /// Throws `notPermitted`.
    private mutating func removeBare(
        _ person: PersonIdentity, _ known: Loaded<StoredParticipant>?,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        // The edit is stale when the person was added at the same time: then the participant has to be removed.
        edit.records.append(
            .checking(
                RecordKeys.participant(collaboration, person),
                expecting: known.map { .version($0.version) } ?? .absent))
        guard try records.isInSet(person, of: collaboration) else { return }
        try authority.checkRemoving(person, role: .member)
        edit.removedRoots.append(person.rootHash)
    }

    /// Removes one participant; `leaving`: all who are removed. Returns the account concerned.
    private mutating func remove(
        _ person: PersonIdentity, _ known: Loaded<StoredParticipant>, leaving: Set<PersonIdentity>,
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Account? {
        // A link or an acceptance that can't be read is removed as any other.
        let link = try records.record(RecordKeys.link(collaboration, person))
        let linked = link?.account
        let acceptance = try records.record(RecordKeys.acceptance(collaboration, person))
        let accepter = acceptance?.account
        var stored = known.value
        stored.removedAt = context.now
        stored.removedBy = authority.bearer
        stored.formerAccount = linked ?? accepter ?? stored.formerAccount
        edit.removedRoots.append(person.rootHash)
        edit.records += [
            try .json(
                RecordKeys.participant(collaboration, person), stored, expecting: .version(known.version)),
            RecordEdit(RecordKeys.access(collaboration, person), value: nil),
            RecordEdit(RecordKeys.joining(collaboration, person), value: nil),
            RecordEdit(RecordKeys.cleared(collaboration, person), value: nil),
            // The edit is stale when an account was linked at the same time: otherwise that link would remain.
            RecordEdit(
                RecordKeys.link(collaboration, person), value: nil,
                expecting: link.map { .version($0.version) } ?? .absent),
            RecordEdit(
                RecordKeys.acceptance(collaboration, person), value: nil,
                expecting: acceptance.map { .version($0.version) } ?? .absent),
        ]
        if let linked {
            edit.records.append(RecordEdit(RecordKeys.linked(linked, collaboration, person), value: nil))
            accounts.append(.account(linked))
        }
        for account in [linked, accepter] {
            if let account, leavers.insert(account).inserted { try removeShare(of: account, leaving: leaving, records) }
        }
        return stored.formerAccount
    }

    /// The people who leave are taken out of the account's share. The share leaves the account's scope, unless the
    /// account takes part under another identity.
    private mutating func removeShare(
        of account: Account, leaving: Set<PersonIdentity>, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        var share = try records.share(of: account, in: collaboration)
        share.remove(leaving)
        if !share.people.isEmpty {
            edit.records.append(share.writing)
        } else if let other = try records.link(of: account, in: collaboration, toOtherThan: leaving) {
            edit.records += [.checking(other.key, expecting: .version(other.version)), share.emptied]
        } else {
            edit.records.append(share.removal)
        }
    }
}

extension ServiceError {
    /// A request would make a second owner.
    static var oneOwner: ServiceError {
        ServiceError(
            .notPermitted, "a collaboration has one owner: claimOwnership and transferOwnership say who it is")
    }
}
