import Core
import Foundation

extension StoredRecord {
    /// The account that the record of a link or of an acceptance names; `nil` when it is damaged.
    var account: Account? { String(validating: value, as: UTF8.self).flatMap { Account($0) } }
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

    /// The same of a participant whose root hash is in the set, too. It may have left that without the layer.
    func presentParticipant(
        _ person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Loaded<StoredParticipant> {
        let known = try participant(person, in: collaboration)
        guard try isInSet(person, of: collaboration) else {
            throw ServiceError(
                .unknownParticipant, "\(person.rootHash) is not in the set of \(collaboration): add it first")
        }
        return known
    }

    /// The account that a participant is linked to.
    ///
    /// Throws `storageDamaged` when the record of the link names none.
    func account(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Account? {
        guard let link = try record(RecordKeys.link(collaboration, person)) else { return nil }
        guard let account = link.account else {
            throw ServiceError(.storageDamaged, "the record of a participant's link is damaged")
        }
        return account
    }

    /// Whether the account is linked to the person. A record under the account's name alone does not tell: it may be
    /// left from a collaboration of that identifier that has ended.
    func isLinked(
        _ account: Account, to person: PersonIdentity, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Bool {
        try record(RecordKeys.link(collaboration, person))?.value == Array(account.name.utf8)
    }

    /// A record that links an account to a participant of the collaboration who is not among `people`, see `isLinked`.
    func link(
        of account: Account, in collaboration: CollaborationIdentifier, toOtherThan people: Set<PersonIdentity>
    ) throws(ServiceError) -> StoredRecord? {
        let page = try records(
            in: .beginning(with: RecordKeys.linked(account, collaboration)), limit: Limits.identitiesPerAccountMax,
            isDescending: false)
        for record in page.items {
            guard let root = Digest(record.key.suffix(Digest.byteCount)) else { continue }
            let person = PersonIdentity(rootHash: root)
            if !people.contains(person), try isLinked(account, to: person, in: collaboration) { return record }
        }
        return nil
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
            if let participant = try describe(person, in: collaboration, stored) { participants.append(participant) }
        }
        return (participants, page.hasMore)
    }

    /// The participant, removed or not; `nil` when the person never took part.
    func describe(
        _ person: PersonIdentity, in collaboration: CollaborationIdentifier, _ stored: StoredCollaboration
    ) throws(ServiceError) -> Participant? {
        guard let known = try load(StoredParticipant.self, at: RecordKeys.participant(collaboration, person))?.value
        else { return nil }
        let joined = try record(RecordKeys.joining(collaboration, person))?.number()
        return Participant(
            identity: person, displayName: known.displayName, role: known.role,
            permission: known.permission ?? stored.permission,
            followsShareOptions: known.permission == nil,
            state: known.removedAt != nil ? .removed : joined != nil ? .joined : .invited, invitedAt: known.invitedAt,
            joinedAt: joined.map { Date(timeIntervalSince1970: Double($0) / 1000) }, removedAt: known.removedAt,
            account: known.removedAt == nil ? try account(of: person, in: collaboration) : known.formerAccount)
    }
}
