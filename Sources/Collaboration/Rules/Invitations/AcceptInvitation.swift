package import Core

/// Accepts an invitation for an account. The share is then in the account's shared scope. The identity, if one is
/// given, becomes a participant. Accepting again changes nothing. If the invitation can't be accepted, the answer says
/// why; this is no error.
public struct AcceptInvitation: RuledRequest {
    public static let name = "acceptInvitation"
    public typealias Answer = Acceptance

    public var token: InvitationToken
    public var account: Account
    public var identity: PersonIdentity?
    public var displayName: String?

    public init(
        _ token: InvitationToken, for account: Account, identity: PersonIdentity? = nil, displayName: String? = nil
    ) {
        self.token = token
        self.account = account
        self.identity = identity
        self.displayName = displayName
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try check(displayName, "displayName")
        func refused(_ refusal: Acceptance.Refusal) -> Decision<Answer> {
            .answer(Acceptance(token: token, refusal: refusal, share: nil))
        }
        let name = context.name(of: token)
        guard let place = try records.record(RecordKeys.invitationPlace(name)),
            let collaboration = CollaborationIdentifier(utf8: place.value),
            let known = try records.load(StoredInvitation.self, at: RecordKeys.invitation(collaboration, name)),
            let found = try records.load(StoredCollaboration.self, at: RecordKeys.collaboration(collaboration))
        else { return refused(.unknown) }
        let acceptance = Acceptance(
            token: token, refusal: nil, share: found.value.highlight(collaboration, context))
        switch known.value.state(at: context.now) {
        case .accepted:
            guard known.value.acceptedBy == account else { return refused(.used) }
            // The invitation does not bring back a participant who was removed after accepting it.
            if let identity,
                let participant = try records.load(
                    StoredParticipant.self, at: RecordKeys.participant(collaboration, identity)),
                participant.value.removedAt != nil
            {
                return refused(.conflict)
            }
            return .answer(acceptance)
        case .revoked: return refused(.revoked)
        case .expired: return refused(.expired)
        case .pending: break
        }
        var stored = known.value
        stored.acceptedBy = account
        stored.acceptedAt = context.now
        var edit = Edit(collaboration)
        edit.records = [
            try .json(
                RecordKeys.invitation(collaboration, name), stored, expecting: .version(known.version)),
            RecordEdit(RecordKeys.accepted(account, collaboration), value: identity?.rootHash.bytes ?? []),
        ]
        if let identity {
            edit.records.append(
                RecordEdit(RecordKeys.acceptance(collaboration, identity), value: Array(account.name.utf8)))
            let participant = try records.load(
                StoredParticipant.self, at: RecordKeys.participant(collaboration, identity))
            // An invitation neither brings back a removed participant nor uses an identity that is linked to another
            // account.
            guard participant?.value.removedAt == nil,
                try records.account(of: identity, in: collaboration) ?? account == account
            else { return refused(.conflict) }
            if let participant {
                edit.records += [
                    .checking(
                        RecordKeys.participant(collaboration, identity), expecting: .version(participant.version)),
                    .checking(
                        RecordKeys.link(collaboration, identity),
                        expecting: try records.linkExpectation(of: identity, in: collaboration)),
                ]
            } else {
                edit.addedRoots = [identity.rootHash]
                edit.records.append(RecordEdit(RecordKeys.arrivals(collaboration), value: []))
                edit.records += try StoredParticipant.records(
                    of: NewParticipant(
                        identity, displayName: displayName, role: stored.role, permission: stored.permission),
                    in: collaboration, at: context.now, version: nil)
            }
        }
        return .edit(edit, topics: [.collaboration(collaboration), .account(account)]) { _ in acceptance }
    }
}
