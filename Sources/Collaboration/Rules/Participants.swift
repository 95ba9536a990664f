public import Core
import Foundation

/// Adds participants by their identities: all of them, or none when one of them is refused. Present participants are
/// not changed. Removed ones become participants again, with the state `invited`.
public struct AddParticipants: RuledRequest {
    public static let name = "addParticipants"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var participants: [NewParticipant]

    public init(_ participants: [NewParticipant], to collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.participants = participants
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLimit(participants.count, Limits.participantsPerRequestMax, "participants")
        _ = try records.collaboration(collaboration)
        var edit = Edit(collaboration)
        var seen: Set<PersonIdentity> = []
        for participant in participants where seen.insert(participant.identity).inserted {
            guard participant.role != .owner else {
                throw ServiceError(.notPermitted, "a collaboration has one owner, who has started it")
            }
            try check(participant.displayName, "a name")
            let known = try records.load(
                StoredParticipant.self, at: RecordKeys.participant(collaboration, participant.identity))
            if let known, known.value.removedAt == nil { continue }
            edit.addedRoots.append(participant.identity.rootHash)
            edit.records += try StoredParticipant.records(
                of: participant, in: collaboration, at: context.now, version: known?.version)
        }
        guard !edit.addedRoots.isEmpty else { return .unchanged }
        edit.records.append(RecordEdit(RecordKeys.arrivals(collaboration), value: []))
        let count = edit.addedRoots.count
        return .change(edit, topics: [.collaboration(collaboration)], count: count)
    }
}

extension StoredParticipant {
    /// The records of a new participant. `version`: that of the record of a participant who was removed earlier; `nil`
    /// when there is no record.
    static func records(
        of participant: NewParticipant, in collaboration: CollaborationIdentifier, at date: Date, version: UInt64?
    ) throws(ServiceError) -> [RecordEdit] {
        let role = participant.role ?? .member
        let stored = StoredParticipant(
            displayName: participant.displayName, role: role, permission: participant.permission, invitedAt: date)
        return [
            try .json(
                RecordKeys.participant(collaboration, participant.identity), stored,
                expecting: version.map { .version($0) } ?? .absent),
            RecordEdit(
                RecordKeys.access(collaboration, participant.identity),
                value: OwnAccess.value(role: role, permission: participant.permission)),
        ]
    }
}

/// Removes participants: their root hashes leave the set, their accounts are no longer linked, and all their grants are
/// revoked. The owner can't be removed. Identities that take no part are ignored.
public struct RemoveParticipants: RuledRequest {
    public static let name = "removeParticipants"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var participants: [PersonIdentity]

    public init(_ participants: [PersonIdentity], from collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.participants = participants
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLimit(participants.count, Limits.participantsPerRequestMax, "participants")
        _ = try records.collaboration(collaboration)
        var edit = Edit(collaboration)
        var topics: [Topic] = [.collaboration(collaboration)]
        let leaving = Set(participants)
        for person in leaving {
            let key = RecordKeys.participant(collaboration, person)
            guard let known = try records.load(StoredParticipant.self, at: key), known.value.removedAt == nil else {
                continue
            }
            var stored = known.value
            guard stored.role != .owner else {
                throw ServiceError(.notPermitted, "the owner can't be removed: stop sharing instead")
            }
            stored.removedAt = context.now
            edit.removedRoots.append(person.rootHash)
            edit.records += [
                try .json(key, stored, expecting: .version(known.version)),
                RecordEdit(RecordKeys.access(collaboration, person), value: nil),
                RecordEdit(RecordKeys.joining(collaboration, person), value: nil),
                RecordEdit(RecordKeys.cleared(collaboration, person), value: nil),
                // The edit is stale when an account was linked at the same time: otherwise that link would remain.
                RecordEdit(
                    RecordKeys.link(collaboration, person), value: nil,
                    expecting: try records.linkExpectation(of: person, in: collaboration)),
            ]
            let linked = try records.account(of: person, in: collaboration)
            if let linked {
                edit.records.append(RecordEdit(RecordKeys.linked(linked, collaboration, person), value: nil))
                topics.append(.account(linked))
            }
            let acceptance = try records.record(RecordKeys.acceptance(collaboration, person))
            let accepter = acceptance.flatMap { Account(String(decoding: $0.value, as: UTF8.self)) }
            edit.records.append(
                RecordEdit(
                    RecordKeys.acceptance(collaboration, person), value: nil,
                    expecting: acceptance.map { .version($0.version) } ?? .absent))
            // The share leaves the account's scope, unless the account takes part under another identity.
            for account in Set([linked, accepter].compactMap { $0 }) {
                let key = RecordKeys.accepted(account, collaboration)
                let acceptedAs = try records.record(key)?.value
                guard account == linked || acceptedAs == person.rootHash.bytes else { continue }
                if let other = try records.link(of: account, in: collaboration, toOtherThan: leaving) {
                    edit.records.append(.checking(other.key, expecting: .version(other.version)))
                } else {
                    edit.records.append(RecordEdit(key, value: nil))
                }
            }
        }
        guard !edit.removedRoots.isEmpty else { return .unchanged }
        let count = edit.removedRoots.count
        return .change(edit, topics: topics, count: count)
    }
}

/// Changes a participant's name, role or permission. A change of the role or the permission revokes the participant's
/// grants.
public struct UpdateParticipant: RuledRequest {
    public static let name = "updateParticipant"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// The participant's new name, role and permission.
    public var participant: NewParticipant

    public init(_ participant: NewParticipant, in collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.participant = participant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try check(participant.displayName, "a name")
        _ = try records.collaboration(collaboration)
        let known = try records.participant(participant.identity, in: collaboration)
        let before = known.value
        var stored = before
        stored.displayName = participant.displayName
        stored.role = participant.role ?? before.role
        // The owner may always write.
        stored.permission = before.role == .owner ? .readWrite : participant.permission
        guard (stored.role == .owner) == (before.role == .owner) else {
            throw ServiceError(.notPermitted, "a collaboration has one owner, who has started it")
        }
        var edit = Edit(collaboration)
        edit.records = [
            try .json(
                RecordKeys.participant(collaboration, participant.identity), stored, expecting: .version(known.version))
        ]
        if stored.role != before.role || stored.permission != before.permission {
            edit.records.append(
                RecordEdit(
                    RecordKeys.access(collaboration, participant.identity),
                    value: OwnAccess.value(role: stored.role, permission: stored.permission), expecting: .present))
        }
        return .change(edit, topics: [.collaboration(collaboration)], count: 1)
    }
}

/// A page of a collaboration's participants, in the order of their root hashes.
public struct ListParticipants: RuledRequest {
    public static let name = "listParticipants"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        public let participants: [Participant]
        public let hasMore: Bool
    }

    public var collaboration: CollaborationIdentifier
    /// The last one of the page before.
    public var after: PersonIdentity?
    public var limit: Int
    /// Whether those who were removed are listed too.
    public var includesRemoved: Bool

    public init(
        of collaboration: CollaborationIdentifier, after: PersonIdentity? = nil, limit: Int = 256,
        includesRemoved: Bool = false
    ) {
        self.collaboration = collaboration
        self.after = after
        self.limit = limit
        self.includesRemoved = includesRemoved
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.participantsPerPageMax)
        let found = try records.collaboration(collaboration)
        let (participants, hasMore) = try records.participants(
            of: collaboration, found.value, after: after, limit: limit, includesRemoved: includesRemoved)
        return .answer(Answer(participants: participants, hasMore: hasMore))
    }
}

extension RecordReader where Self: ~Copyable {
    /// The record of a participant who was not removed.
    ///
    /// Throws `unknownParticipant` when there is none.
    func participant(
        _ person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Loaded<StoredParticipant> {
        let key = RecordKeys.participant(collaboration, person)
        guard let known = try load(StoredParticipant.self, at: key), known.value.removedAt == nil else {
            throw ServiceError(
                .unknownParticipant, "\(person.rootHash) takes no part in \(collaboration): add it first")
        }
        return known
    }

    /// The account that a participant is linked to.
    func account(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Account? {
        try record(RecordKeys.link(collaboration, person)).flatMap {
            Account(String(decoding: $0.value, as: UTF8.self))
        }
    }

    /// A record that links an account to a participant of the collaboration who is not among `people`.
    func link(
        of account: Account, in collaboration: CollaborationIdentifier, toOtherThan people: Set<PersonIdentity>
    ) throws(ServiceError) -> StoredRecord? {
        let page = try records(
            in: .beginning(with: RecordKeys.linked(account, collaboration)), limit: people.count + 1,
            isDescending: false)
        return page.items.first { record in
            Digest(record.key.suffix(Digest.byteCount)).map { !people.contains(PersonIdentity(rootHash: $0)) } ?? false
        }
    }

    /// Makes an edit stale when the participant's link has changed since it was read.
    func linkExpectation(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> RecordEdit.Expectation {
        try record(RecordKeys.link(collaboration, person)).map { .version($0.version) } ?? .absent
    }

    /// Participants behind `after`, and whether there are more.
    func participants(
        of collaboration: CollaborationIdentifier, _ stored: StoredCollaboration, after: PersonIdentity?, limit: Int,
        includesRemoved: Bool
    ) throws(ServiceError) -> (participants: [Participant], hasMore: Bool) {
        // Removed participants have no access record: a list of access records leaves them out.
        let prefix = includesRemoved ? RecordKeys.participants(collaboration) : RecordKeys.accesses(collaboration)
        var range = RecordRange.beginning(with: prefix)
        if let after { range.start = prefix + after.rootHash.bytes + [0] }
        var participants: [Participant] = []
        let page = try records(in: range, limit: limit, isDescending: false)
        for record in page.items {
            guard let root = Digest(record.key.suffix(Digest.byteCount)) else { continue }
            let person = PersonIdentity(rootHash: root)
            guard let known = try load(StoredParticipant.self, at: RecordKeys.participant(collaboration, person)) else {
                continue
            }
            participants.append(try describe(person, known.value, in: collaboration, stored))
        }
        return (participants, page.hasMore)
    }

    private func describe(
        _ person: PersonIdentity, _ known: StoredParticipant, in collaboration: CollaborationIdentifier,
        _ stored: StoredCollaboration
    ) throws(ServiceError) -> Participant {
        let joined = try record(RecordKeys.joining(collaboration, person))?.number()
        return Participant(
            identity: person, displayName: known.displayName, role: known.role,
            permission: known.permission ?? stored.shareOptions.permission,
            followsShareOptions: known.permission == nil,
            state: known.removedAt != nil ? .removed : joined != nil ? .joined : .invited, invitedAt: known.invitedAt,
            joinedAt: joined.map { Date(timeIntervalSince1970: Double($0) / 1000) }, removedAt: known.removedAt,
            account: try account(of: person, in: collaboration))
    }
}

/// Links a participant who has joined to an account, so that the account's feed has the collaboration's notices. A
/// participant has one account at a time; an account may have several identities in a collaboration.
public struct LinkAccount: RuledRequest {
    public static let name = "linkAccount"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var identity: PersonIdentity
    /// `nil` ends the link.
    public var account: Account?

    public init(_ account: Account?, to identity: PersonIdentity, in collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.identity = identity
        self.account = account
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        _ = try records.collaboration(collaboration)
        _ = try records.participant(identity, in: collaboration)
        guard let joined = try records.record(RecordKeys.joining(collaboration, identity)) else {
            throw ServiceError(
                .notPermitted,
                """
                no proof of \(identity.rootHash) was granted yet: one of its devices has to open the collaboration first
                """
            )
        }
        let before = try records.record(RecordKeys.link(collaboration, identity))
        let former = before.flatMap { Account(String(decoding: $0.value, as: UTF8.self)) }
        guard former != account else { return .unchanged }
        if let account { try checkRoom(for: account, records) }
        var edit = Edit(collaboration)
        edit.records = [
            .checking(RecordKeys.joining(collaboration, identity), expecting: .version(joined.version)),
            RecordEdit(
                RecordKeys.link(collaboration, identity), value: account.map { Array($0.name.utf8) },
                expecting: before.map { .version($0.version) } ?? .absent),
        ]
        if let former {
            edit.records.append(RecordEdit(RecordKeys.linked(former, collaboration, identity), value: nil))
        }
        if let account {
            edit.records.append(RecordEdit(RecordKeys.linked(account, collaboration, identity), value: []))
        }
        let topics = [former, account].compactMap { $0 }.map { Topic.account($0) }
        return .change(edit, topics: topics + [.collaboration(collaboration)], count: 1)
    }

    /// Throws `limitExceeded` when the account has its maximum of links, or of identities in this collaboration.
    private func checkRoom(
        for account: Account, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        var count = 1
        try records.visitRecords(in: .beginning(with: RecordKeys.linked(account))) { _, _ in
            count += 1
            return count <= Limits.linksPerAccountMax
        }
        try checkLimit(count, Limits.linksPerAccountMax, "links of an account")
        let here = try records.records(
            in: .beginning(with: RecordKeys.linked(account, collaboration)), limit: Limits.identitiesPerAccountMax,
            isDescending: false)
        try checkLimit(
            here.items.count + 1, Limits.identitiesPerAccountMax, "identities of an account in a collaboration")
    }
}
