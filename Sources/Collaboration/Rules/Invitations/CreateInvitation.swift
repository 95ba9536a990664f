public import Core
public import Foundation

/// Creates an invitation that can be accepted once. Repeating it with the same token changes nothing. The token of an
/// invitation with other values is refused.
public struct CreateInvitation: RuledRequest {
    public static let name = "createInvitation"
    public typealias Answer = Invitation

    public var collaboration: CollaborationIdentifier
    /// Chosen by the inviting person, and given only to the invited one.
    public var token: InvitationToken
    /// `nil`: member.
    public var role: ParticipantRole?
    /// `nil`: by the share options.
    public var permission: Permission?
    public var expiresAt: Date?
    /// Who invites; `nil`: the owner.
    public var inviter: Inviter?

    public init(
        to collaboration: CollaborationIdentifier, token: InvitationToken = .random(), role: ParticipantRole? = nil,
        permission: Permission? = nil, expiresAt: Date? = nil, inviter: Inviter? = nil
    ) {
        self.collaboration = collaboration
        self.token = token
        self.role = role
        self.permission = permission
        self.expiresAt = expiresAt
        self.inviter = inviter
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard role != .owner else {
            throw ServiceError(.notPermitted, "a collaboration has one owner, who has started it")
        }
        let inviter = try givenInviter()
        let found = try records.collaboration(collaboration).value
        var stored = StoredInvitation(
            role: role ?? .member, permission: permission, createdAt: context.now, expiresAt: expiresAt)
        stored.inviter = try who(inviter, in: found, records)
        let name = context.name(of: token)
        if let place = try records.record(RecordKeys.invitationPlace(name)) {
            guard place.value == collaboration.utf8,
                let known = try records.load(StoredInvitation.self, at: RecordKeys.invitation(collaboration, name)),
                place.version == context.earlier || stored.offersTheSame(as: known.value)
            else { throw ServiceError(.notPermitted, "that token belongs to another invitation") }
            let invitation = known.value.invitation(name, collaboration, context)
            let check = RecordEdit.checking(
                RecordKeys.invitation(collaboration, name), expecting: .version(known.version))
            return .note(.remembering(collaboration, [check])) { _ in invitation }
        }
        guard found.shareOptions.allows(.joinByInvitation) != false else {
            throw ServiceError(.notPermitted, "the share options don't let people come in by invitations")
        }
        if let expiresAt, expiresAt <= context.expiryTime {
            throw ServiceError(.malformedRequest, "expiresAt is not in the future: nobody could accept the invitation")
        }
        var edit = Edit(collaboration)
        edit.records = [
            RecordEdit(RecordKeys.invitationPlace(name), value: collaboration.utf8, expecting: .absent),
            try .json(RecordKeys.invitation(collaboration, name), stored, expecting: .absent),
        ]
        let invitation = stored.invitation(name, collaboration, context)
        return .edit(edit, topics: []) { _ in invitation }
    }

    /// The inviter of the request. A blank name or handle is none.
    private func givenInviter() throws(ServiceError) -> Inviter? {
        guard var given = inviter else { return nil }
        try check(given.name, "inviter.name")
        try check(given.handle, "inviter.handle")
        if given.name?.isBlank == true { given.name = nil }
        if given.handle?.isBlank == true { given.handle = nil }
        guard given != Inviter() else {
            throw ServiceError(.malformedRequest, "inviter has none of account, name and handle")
        }
        return given
    }

    /// Who invites. An account without a name and a handle has those that the collaboration knows of it.
    private func who(
        _ inviter: Inviter?, in found: StoredCollaboration, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Inviter? {
        guard let inviter else {
            var owner = try known(found.owner, in: found, records)
            owner.account = nil
            return owner == Inviter() ? nil : owner
        }
        guard let account = inviter.account, inviter == Inviter(account: account) else { return inviter }
        return try known(account, in: found, records)
    }

    /// An account with the name and handle that the collaboration knows of it: those of the start, if the account has
    /// started the collaboration, else the name of a participant who is linked to it, or who is the owner.
    private func known(
        _ account: Account, in found: StoredCollaboration, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Inviter {
        if account == found.initiator ?? found.owner {
            return Inviter(account: account, name: found.initiatorName, handle: found.initiatorHandle)
        }
        let link = try records.link(of: account, in: collaboration, toOtherThan: [])
        let linked = link.flatMap { Digest($0.key.suffix(Digest.byteCount)) }.map { PersonIdentity(rootHash: $0) }
        guard let person = account == found.owner ? found.ownerIdentity : linked else {
            return Inviter(account: account)
        }
        let key = RecordKeys.participant(collaboration, person)
        return Inviter(account: account, name: try records.load(StoredParticipant.self, at: key)?.value.displayName)
    }
}

extension StoredInvitation {
    /// Whether both invitations say the same to the invited person.
    fileprivate func offersTheSame(as other: StoredInvitation) -> Bool {
        (role, permission, expiryMilliseconds, inviter)
            == (other.role, other.permission, other.expiryMilliseconds, other.inviter)
    }

    /// In whole milliseconds, as records keep it.
    private var expiryMilliseconds: Double? { expiresAt.map { ($0.timeIntervalSince1970 * 1000).rounded() } }
}
