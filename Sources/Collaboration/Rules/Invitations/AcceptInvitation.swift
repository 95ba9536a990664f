package import Core

/// Accepts an invitation for an account, and brings an identity in when one is given. An acceptance without an identity
/// can be completed later, by accepting again with one. Only an answer with the state `in` has the share: then the
/// identity takes part. While the share options let nobody come in by invitations, nothing is accepted or completed.
/// Accepting again changes nothing. If the invitation can't be accepted, the answer says why; this
/// is no error.
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
        guard let found = try records.invitation(token, context) else { return refused(.unknown) }
        let known = found.invitation.value
        switch known.state(at: context.expiryTime) {
        case .revoked: return refused(.revoked)
        case .expired: return refused(.expired)
        case .accepted, .completed:
            guard known.acceptedBy == account else { return refused(.used) }
        case .pending: break
        }
        if let completed = known.identity {
            guard identity ?? completed == completed, try records.accepter(of: found) == account else {
                return refused(.conflict)
            }
            let acceptance = Acceptance.takesPart(token, found.collaboration.highlight(found.identifier, context))
            // A removal deletes the record, so that nobody who was removed at the same time is told to be in.
            let key = RecordKeys.acceptance(found.identifier, completed)
            let checks = [found.unchanged, .checking(key, expecting: .present)]
            return .note(.remembering(found.identifier, checks)) { _ in acceptance }
        }
        guard found.letsPeopleIn else { return refused(.closed) }
        guard let identity else { return try accept(found, context) }
        return try complete(found, identity, context, records)
    }

    private func refused(_ refusal: Acceptance.Refusal) -> Decision<Answer> {
        .answer(.refused(token, refusal))
    }

    /// Accepts without an identity.
    private func accept(_ found: FoundInvitation, _ context: RuleContext) throws(ServiceError) -> Decision<Answer> {
        let acceptance = Acceptance.accepted(token, found.identifier)
        var stored = found.invitation.value
        guard stored.acceptedBy == nil else {
            // A repetition must not accept again what was withdrawn meanwhile.
            return .edit(.remembering(found.identifier, [found.unchanged] + found.expectations), topics: []) { _ in
                acceptance
            }
        }
        stored.acceptedBy = account
        stored.acceptedAt = context.now
        var edit = Edit(found.identifier)
        edit.records = [try found.writing(stored)] + found.expectations
        return .edit(edit, topics: []) { _ in acceptance }
    }

    /// Brings the identity in. An identity that takes part already stays as it is.
    private func complete(
        _ found: FoundInvitation, _ identity: PersonIdentity, _ context: RuleContext,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let collaboration = found.identifier
        let acceptance = try records.record(RecordKeys.acceptance(collaboration, identity))
        let participant = try records.load(
            StoredParticipant.self, at: RecordKeys.participant(collaboration, identity))
        // An invitation neither brings back a removed participant nor uses an identity of another account. The owner's
        // identity belongs to the account that owns the collaboration.
        guard participant?.value.removedAt == nil,
            participant?.value.role != .owner || account == found.collaboration.owner,
            try records.account(of: identity, in: collaboration) ?? account == account,
            participant?.value.formerAccount ?? account == account,
            acceptance.map({ $0.value == Array(account.name.utf8) }) ?? true
        else { return refused(.conflict) }
        var stored = found.invitation.value
        stored.acceptedBy = account
        stored.acceptedAt = stored.acceptedAt ?? context.now
        stored.identity = identity
        stored.completedAt = context.now
        var share = try records.share(of: account, in: collaboration)
        try share.add(identity)
        var edit = Edit(collaboration)
        edit.records = found.expectations
        edit.records += [
            try found.writing(stored), share.writing,
            RecordEdit(
                RecordKeys.acceptance(collaboration, identity), value: Array(account.name.utf8),
                expecting: acceptance.map { .version($0.version) } ?? .absent),
        ]
        if let participant {
            // A root hash that was taken out of the set without the layer does not return by an invitation.
            guard try records.isInSet(identity, of: collaboration) else { return refused(.conflict) }
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
                in: collaboration, at: context.now, replacing: nil)
        }
        let highlight = found.collaboration.highlight(collaboration, context)
        return .edit(edit, topics: [.collaboration(collaboration), .account(account)]) { [token] _ in
            .takesPart(token, highlight)
        }
    }
}
