public import Core
public import Foundation

/// Creates an invitation that can be accepted once. Repeating it with the same token changes nothing.
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

    public init(
        to collaboration: CollaborationIdentifier, token: InvitationToken = .random(), role: ParticipantRole? = nil,
        permission: Permission? = nil, expiresAt: Date? = nil
    ) {
        self.collaboration = collaboration
        self.token = token
        self.role = role
        self.permission = permission
        self.expiresAt = expiresAt
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard role != .owner else {
            throw ServiceError(.notPermitted, "a collaboration has one owner, who has started it")
        }
        _ = try records.collaboration(collaboration)
        let name = context.name(of: token)
        if let place = try records.record(RecordKeys.invitationPlace(name)) {
            guard place.value == collaboration.utf8,
                let known = try records.load(StoredInvitation.self, at: RecordKeys.invitation(collaboration, name))
            else { throw ServiceError(.notPermitted, "that token belongs to another invitation") }
            return .answer(known.value.invitation(name, collaboration, context))
        }
        let stored = StoredInvitation(
            role: role ?? .member, permission: permission, createdAt: context.now, expiresAt: expiresAt)
        var edit = Edit(collaboration)
        edit.records = [
            RecordEdit(RecordKeys.invitationPlace(name), value: collaboration.utf8, expecting: .absent),
            try .json(RecordKeys.invitation(collaboration, name), stored, expecting: .absent),
        ]
        let invitation = stored.invitation(name, collaboration, context)
        return .edit(edit, topics: []) { _ in invitation }
    }
}

extension RuleContext {
    /// Names the token's invitation in the records. The token can't be computed from it.
    fileprivate func name(of token: InvitationToken) -> [UInt8] {
        Array(sha256(token.bytes).bytes.prefix(RecordKeys.invitationBytes))
    }
}

extension StoredInvitation {
    fileprivate func state(at date: Date) -> InvitationState {
        if acceptedBy != nil { return .accepted }
        if isRevoked { return .revoked }
        return expiresAt.map { $0 <= date } ?? false ? .expired : .pending
    }

    fileprivate func invitation(
        _ name: [UInt8], _ collaboration: CollaborationIdentifier, _ context: RuleContext
    ) -> Invitation {
        Invitation(
            identifier: name.hexadecimal, collaboration: collaboration, role: role, permission: permission,
            state: state(at: context.now), createdAt: createdAt, expiresAt: expiresAt, acceptedBy: acceptedBy,
            acceptedAt: acceptedAt)
    }
}

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
        try check(displayName, "a name")
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

/// A page of a collaboration's invitations: those that are pending, or all.
public struct ListInvitations: RuledRequest {
    public static let name = "listInvitations"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        public let invitations: [Invitation]
        public let hasMore: Bool
    }

    public var collaboration: CollaborationIdentifier
    public var includesSettled: Bool
    /// The identifier of the last one of the page before.
    public var after: String?
    public var limit: Int

    public init(
        of collaboration: CollaborationIdentifier, includesSettled: Bool = false, after: String? = nil,
        limit: Int = 256
    ) {
        self.collaboration = collaboration
        self.includesSettled = includesSettled
        self.after = after
        self.limit = limit
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.invitationsPerPageMax)
        _ = try records.collaboration(collaboration)
        var range = RecordRange.beginning(with: RecordKeys.invitations(collaboration))
        if let after { range.start = RecordKeys.invitation(collaboration, try invitationName(after)) + [0] }
        var invitations: [Invitation] = []
        while true {
            let page = try records.records(in: range, limit: limit + 1, isDescending: false)
            for record in page.items {
                let invitation = try record.decoded(StoredInvitation.self)
                    .invitation(Array(record.key.suffix(RecordKeys.invitationBytes)), collaboration, context)
                guard includesSettled || invitation.state == .pending else { continue }
                guard invitations.count < limit else {
                    return .answer(Answer(invitations: invitations, hasMore: true))
                }
                invitations.append(invitation)
            }
            guard page.hasMore, let last = page.items.last else {
                return .answer(Answer(invitations: invitations, hasMore: false))
            }
            range.start = last.key + [0]
        }
    }
}

/// The bytes that name an invitation.
private func invitationName(_ text: String) throws(ServiceError) -> [UInt8] {
    guard let name = [UInt8](hexadecimal: text), name.count == RecordKeys.invitationBytes else {
        throw ServiceError(.malformedRequest, "“\(text.prefix(64))” is not an invitation's identifier")
    }
    return name
}

/// Revokes an invitation that was not accepted. Revoking it again changes nothing.
public struct RevokeInvitation: RuledRequest {
    public static let name = "revokeInvitation"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var identifier: String

    public init(_ identifier: String, of collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.identifier = identifier
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let key = RecordKeys.invitation(collaboration, try invitationName(identifier))
        _ = try records.collaboration(collaboration)
        guard let known = try records.load(StoredInvitation.self, at: key) else {
            throw ServiceError(.unknownInvitation, "\(collaboration) has no invitation \(identifier)")
        }
        guard known.value.acceptedBy == nil else {
            throw ServiceError(.notPermitted, "the invitation was accepted: remove the participant instead")
        }
        guard !known.value.isRevoked else { return .unchanged }
        var stored = known.value
        stored.isRevoked = true
        var edit = Edit(collaboration)
        edit.records = [try .json(key, stored, expecting: .version(known.version))]
        return .change(edit, topics: [], count: 1)
    }
}

/// An account's shares: those that it has started, or those that it was invited to and has accepted.
public struct ListShares: RuledRequest {
    public static let name = "listShares"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        public let shares: [CollaborationHighlight]
        /// To be given as `after` for the next page; `nil` when there is none.
        public let next: String?
    }

    public var account: Account
    public var scope: Scope
    /// The `next` of the page before.
    public var after: String?
    public var limit: Int

    public init(of account: Account, scope: Scope, after: String? = nil, limit: Int = 256) {
        self.account = account
        self.scope = scope
        self.after = after
        self.limit = limit
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.sharesPerPageMax)
        let prefix = scope == .private ? RecordKeys.starts(account) : RecordKeys.accepted(account)
        var range = RecordRange.beginning(with: prefix)
        if let after {
            try checkName(after, "where the page before ended")
            range.start = prefix + Array(after.utf8) + [0]
        }
        var shares: [CollaborationHighlight] = []
        let page = try records.records(in: range, limit: limit, isDescending: false)
        for record in page.items {
            let name = scope == .private ? record.value : Array(record.key.dropFirst(prefix.count))
            guard let identifier = CollaborationIdentifier(utf8: name),
                let found = try records.load(StoredCollaboration.self, at: RecordKeys.collaboration(identifier))
            else { continue }
            shares.append(found.value.highlight(identifier, context))
        }
        let last = page.items.last.map { String(decoding: $0.key.dropFirst(prefix.count), as: UTF8.self) }
        return .answer(Answer(shares: shares, next: page.hasMore ? last : nil))
    }
}
