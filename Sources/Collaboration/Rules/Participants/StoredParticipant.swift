import Core
import Foundation

/// `p`: a participant.
struct StoredParticipant: Hashable, Codable {
    var displayName: String?
    var role: ParticipantRole
    var permission: Permission?
    var invitedAt: Date
    var removedAt: Date?
    /// The participants by whose grants the person was added and removed; `nil`: by the backend, or not at all.
    var addedBy: PersonIdentity?
    var removedBy: PersonIdentity?
    /// The account that the person's last removal concerned. It stays when the person is added again: the identity's
    /// devices are that account's.
    var formerAccount: Account?
}

extension StoredParticipant {
    /// The records of a new participant. `removed`: the record of the person who was removed earlier; `nil` when there
    /// is no record. `adder`: the participant whose grant adds the person, if one does.
    static func records(
        of participant: NewParticipant, in collaboration: CollaborationIdentifier, at date: Date,
        replacing removed: Loaded<StoredParticipant>?, by adder: PersonIdentity? = nil
    ) throws(ServiceError) -> [RecordEdit] {
        let role = participant.role ?? .member
        let stored = StoredParticipant(
            displayName: participant.displayName, role: role, permission: participant.permission, invitedAt: date,
            addedBy: adder, formerAccount: removed?.value.formerAccount)
        return [
            try .json(
                RecordKeys.participant(collaboration, participant.identity), stored,
                expecting: removed.map { .version($0.version) } ?? .absent),
            RecordEdit(
                RecordKeys.access(collaboration, participant.identity),
                value: OwnAccess.value(role: role, permission: participant.permission)),
        ]
    }

    /// The records of a participant who is changed to this. `changesAccess`: whether the role or the permission is
    /// another one; then the participant's grants are revoked.
    func changeRecords(
        of person: PersonIdentity, in collaboration: CollaborationIdentifier, version: UInt64, changesAccess: Bool
    ) throws(ServiceError) -> [RecordEdit] {
        let record = try RecordEdit.json(
            RecordKeys.participant(collaboration, person), self, expecting: .version(version))
        guard changesAccess else { return [record] }
        return [
            record,
            RecordEdit(
                RecordKeys.access(collaboration, person), value: OwnAccess.value(role: role, permission: permission),
                expecting: .present),
        ]
    }
}
