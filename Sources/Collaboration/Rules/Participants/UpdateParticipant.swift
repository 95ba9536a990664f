public import Core

/// Changes a participant's name, role or permission. What is left out stays. A change of the role or the permission
/// revokes the participant's grants.
public struct UpdateParticipant: RuledRequest {
    public static let name = "updateParticipant"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var participant: ParticipantChange
    /// The grant of the participant who makes the change; `nil`: the backend does.
    public var grant: AccessGrant?

    public init(
        _ participant: ParticipantChange, in collaboration: CollaborationIdentifier, by grant: AccessGrant? = nil
    ) {
        self.collaboration = collaboration
        self.participant = participant
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try Collaboration.check(participant.displayName.value, "participant.displayName")
        let found = try records.collaboration(collaboration)
        let authority = try records.authority(of: grant, for: .changeParticipants, in: collaboration, found, context)
        let known = try records.participant(participant.identity, in: collaboration)
        let before = known.value
        var changed = before
        changed.displayName = participant.displayName.applied(to: before.displayName)
        changed.role = participant.role ?? before.role
        changed.permission = participant.permission.applied(to: before.permission)
        try check(changed, before, found.value.permission, authority)
        let expectations = authority.expectations(in: collaboration)
        guard changed != before else {
            let key = RecordKeys.participant(collaboration, participant.identity)
            return .remembered(collaboration, expectations + [.checking(key, expecting: .version(known.version))])
        }
        var edit = Edit(collaboration)
        edit.records = expectations
        edit.records += try changed.changeRecords(
            of: participant.identity, in: collaboration, version: known.version,
            changesAccess: changed.role != before.role || changed.permission != before.permission)
        return .change(edit, topics: [.collaboration(collaboration)], count: 1)
    }

    /// Throws `notPermitted` when nobody may make that change, or the bearer of the grant may not. `byOptions`: the
    /// permission of those who have none of their own.
    private func check(
        _ changed: StoredParticipant, _ before: StoredParticipant, _ byOptions: Permission,
        _ authority: ManagingAuthority
    ) throws(ServiceError) {
        guard (changed.role == .owner) == (before.role == .owner) else { throw ServiceError.oneOwner }
        guard before.role != .owner || changed.permission == .readWrite else {
            throw ServiceError(.notPermitted, "the owner may always write")
        }
        try authority.checkChanging(before.role)
        let gains = changed.permission != before.permission
        try authority.checkGiving(
            role: changed.role != before.role ? changed.role : nil,
            permission: gains ? changed.permission ?? byOptions : .readOnly)
    }
}
