public import Core
import Foundation

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
