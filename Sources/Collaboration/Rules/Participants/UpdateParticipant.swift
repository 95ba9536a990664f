public import Core
import Foundation

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
        try check(participant.displayName, "participant.displayName")
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
