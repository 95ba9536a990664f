public import Core

/// Adds and removes participants in one change, as Apple's `SWUpdateCollaborationParticipantsAction` asks for: all of
/// it, or nothing when somebody is refused. The rules are those of `AddParticipants` and `RemoveParticipants`.
public struct UpdateParticipants: RuledRequest {
    public static let name = "updateParticipants"
    public typealias Answer = MembershipReceipt

    public var collaboration: CollaborationIdentifier
    public var added: [NewParticipant]
    public var removed: [PersonIdentity]
    /// The grant of the participant who does it; `nil`: the backend does.
    public var grant: AccessGrant?

    public init(
        of collaboration: CollaborationIdentifier, adding added: [NewParticipant] = [],
        removing removed: [PersonIdentity] = [], by grant: AccessGrant? = nil
    ) {
        self.collaboration = collaboration
        self.added = added
        self.removed = removed
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLimit(added.count + removed.count, Limits.participantsPerRequestMax, "participants")
        let leaving = Set(removed)
        guard !added.contains(where: { leaving.contains($0.identity) }) else {
            throw ServiceError(.malformedRequest, "a person is among those added and those removed")
        }
        let found = try records.collaboration(collaboration)
        if let earlier = context.earlier {
            // A repetition changes nothing, but its answer names the accounts again.
            return .answer(
                MembershipReceipt(
                    sequence: earlier, changed: 0,
                    removed: try records.removed(among: removed, in: collaboration)))
        }
        let authority = try authority(found, context, records)
        var membership = Membership(collaboration, found.value, by: authority)
        let gone = try membership.remove(removed, context, records)
        try membership.add(added, "added", context, records)
        let count = membership.count
        guard count > 0 || !added.isEmpty else {
            return .note(membership.edit) { MembershipReceipt(sequence: $0, changed: 0, removed: gone) }
        }
        return .edit(membership.edit, topics: membership.topics) {
            MembershipReceipt(sequence: $0.sequence, changed: count, removed: gone)
        }
    }

    /// The authority for both parts. Who leaves needs no permission to manage anything.
    private func authority(
        _ found: Loaded<StoredCollaboration>, _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> ManagingAuthority {
        let authority = try records.authority(of: grant, for: nil, in: collaboration, found, context)
        guard !added.isEmpty else { return authority }
        return try records.authority(of: grant, for: .addParticipants, in: collaboration, found, context)
    }
}

extension RecordReader where Self: ~Copyable {
    /// Those of the people who take no part and took part once, with the accounts that their removal concerned.
    fileprivate func removed(
        among people: [PersonIdentity], in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> [RemovedParticipant] {
        var removed: [RemovedParticipant] = []
        var seen: Set<PersonIdentity> = []
        for person in people where seen.insert(person).inserted {
            let key = RecordKeys.participant(collaboration, person)
            guard let known = try load(StoredParticipant.self, at: key), known.value.removedAt != nil else { continue }
            removed.append(RemovedParticipant(identity: person, account: known.value.formerAccount))
        }
        return removed
    }
}
