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
        for (index, participant) in participants.enumerated() where seen.insert(participant.identity).inserted {
            guard participant.role != .owner else {
                throw ServiceError(.notPermitted, "a collaboration has one owner, who has started it")
            }
            try check(participant.displayName, "participants[\(index)].displayName")
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
