import Core

/// The owner among the participants. The owner's account claims an identity once, because identities derive from the
/// collaboration's identifier, which nobody knows before the start.
enum Ownership {
    /// Makes a person the owner: adds the person, or raises a participant's role. Nothing happens when the person is
    /// the owner already.
    ///
    /// `edit` and `stored` are changed; the caller writes `stored`. `name`: `nil` or a blank one keeps a participant's
    /// name.
    ///
    /// Throws `notPermitted` when the owner has another identity, or when the identity belongs to another account: one
    /// that it is linked to, that has accepted its invitation, or that its removal concerned. Throws `storageDamaged`
    /// when a record that tells so is damaged.
    static func add(
        _ person: PersonIdentity, named name: String?, to stored: inout StoredCollaboration,
        _ collaboration: CollaborationIdentifier, _ edit: inout Edit, _ context: RuleContext,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        if let known = stored.ownerIdentity {
            guard known == person else {
                throw ServiceError(
                    .notPermitted, "the owner of \(collaboration) takes part already, under another identity")
            }
            return
        }
        let key = RecordKeys.participant(collaboration, person)
        let before = try records.load(StoredParticipant.self, at: key)
        let acceptance = try records.record(RecordKeys.acceptance(collaboration, person))
        guard acceptance == nil || acceptance?.account != nil else {
            throw ServiceError(.storageDamaged, "the record of a participant's acceptance is damaged")
        }
        let accounts = [
            try records.account(of: person, in: collaboration), before?.value.formerAccount, acceptance?.account,
        ]
        guard accounts.allSatisfy({ $0 == nil || $0 == stored.owner }) else {
            throw ServiceError(
                .notPermitted, "\(person.rootHash) is or was in \(collaboration) for another account than the owner's")
        }
        stored.ownerIdentity = person
        guard let before, before.value.removedAt == nil else {
            edit.addedRoots.append(person.rootHash)
            edit.records += try StoredParticipant.records(
                of: NewParticipant(person, displayName: name, role: .owner, permission: .readWrite),
                in: collaboration, at: context.now, replacing: before)
            return
        }
        var owner = before.value
        if let name, !name.isBlank { owner.displayName = name }
        edit.records += try raise(owner, person, collaboration, version: before.version)
        edit.records += [
            .checking(
                RecordKeys.link(collaboration, person),
                expecting: try records.linkExpectation(of: person, in: collaboration)),
            .checking(
                RecordKeys.acceptance(collaboration, person),
                expecting: acceptance.map { .version($0.version) } ?? .absent),
        ]
    }

    /// The records of a participant who becomes the owner.
    static func raise(
        _ participant: StoredParticipant, _ person: PersonIdentity, _ collaboration: CollaborationIdentifier,
        version: UInt64
    ) throws(ServiceError) -> [RecordEdit] {
        var owner = participant
        owner.role = .owner
        owner.permission = .readWrite
        return try owner.changeRecords(of: person, in: collaboration, version: version, changesAccess: true)
    }
}
