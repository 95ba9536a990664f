import Core
import Foundation

/// `t`: an invitation.
struct StoredInvitation: Codable {
    var role: ParticipantRole
    var permission: Permission?
    var createdAt: Date
    var expiresAt: Date?
    /// Who invites, as far as it was said.
    var inviter: Inviter?
    var isRevoked = false
    var acceptedBy: Account?
    var acceptedAt: Date?
    /// Who has come in by it.
    var identity: PersonIdentity?
    var completedAt: Date?
}

extension RuleContext {
    /// Names the token's invitation in the records. The token can't be computed from it.
    func name(of token: InvitationToken) -> [UInt8] {
        Array(sha256(token.bytes).bytes.prefix(RecordKeys.invitationBytes))
    }
}

extension RecordReader where Self: ~Copyable {
    /// An invitation with its collaboration; `nil` when there is none of that token.
    ///
    /// Throws `storageDamaged` when one of their records is something else.
    func invitation(
        _ token: InvitationToken, _ context: RuleContext
    ) throws(ServiceError) -> FoundInvitation? {
        let name = context.name(of: token)
        guard let place = try record(RecordKeys.invitationPlace(name)) else { return nil }
        guard let identifier = CollaborationIdentifier(utf8: place.value) else {
            throw ServiceError(.storageDamaged, "the record of an invitation's place is damaged")
        }
        // An ending may have left the place of an invitation that is gone.
        guard let known = try load(StoredInvitation.self, at: RecordKeys.invitation(identifier, name)),
            let collaboration = try load(StoredCollaboration.self, at: RecordKeys.collaboration(identifier))
        else { return nil }
        return FoundInvitation(
            key: RecordKeys.invitation(identifier, name), invitation: known, identifier: identifier,
            collaboration: collaboration.value, collaborationVersion: collaboration.version)
    }

    /// The account whose identity has come in by the invitation and takes part by that still; `nil` when there is none.
    /// A removal ends the acceptance, even when the participant is added again.
    func accepter(of found: FoundInvitation) throws(ServiceError) -> Account? {
        guard let account = found.invitation.value.acceptedBy, let identity = found.invitation.value.identity,
            let participant = try load(
                StoredParticipant.self, at: RecordKeys.participant(found.identifier, identity)),
            participant.value.removedAt == nil,
            try record(RecordKeys.acceptance(found.identifier, identity))?.value == Array(account.name.utf8),
            try isInSet(identity, of: found.identifier)
        else { return nil }
        return account
    }
}

/// An invitation that a token has led to.
struct FoundInvitation {
    let key: [UInt8]
    let invitation: Loaded<StoredInvitation>
    let identifier: CollaborationIdentifier
    let collaboration: StoredCollaboration
    fileprivate let collaborationVersion: UInt64

    /// Whether the share options let people come in by invitations.
    var letsPeopleIn: Bool { collaboration.shareOptions.allows(.joinByInvitation) != false }

    /// Makes an edit stale when the invitation has changed since it was read.
    var unchanged: RecordEdit { .checking(key, expecting: .version(invitation.version)) }

    /// Makes an edit stale when the share options have changed since they were read, if they decide about invitations.
    var expectations: [RecordEdit] {
        guard collaboration.shareOptions.allows(.joinByInvitation) != nil else { return [] }
        return [.checking(RecordKeys.collaboration(identifier), expecting: .version(collaborationVersion))]
    }

    /// Writes the invitation. The edit is stale when it was changed since it was read.
    func writing(_ stored: StoredInvitation) throws(ServiceError) -> RecordEdit {
        try .json(key, stored, expecting: .version(invitation.version))
    }
}

extension StoredInvitation {
    /// A completed invitation stays so. Every other one ends when it is revoked or expires, accepted or not.
    func state(at date: Date) -> InvitationState {
        if identity != nil { return .completed }
        if isRevoked { return .revoked }
        if let expiresAt, expiresAt <= date { return .expired }
        return acceptedBy == nil ? .pending : .accepted
    }

    func invitation(
        _ name: [UInt8], _ collaboration: CollaborationIdentifier, _ context: RuleContext
    ) -> Invitation {
        Invitation(
            identifier: name.hexadecimal, collaboration: collaboration, role: role, permission: permission,
            state: state(at: context.expiryTime), createdAt: createdAt, expiresAt: expiresAt, acceptedBy: acceptedBy,
            acceptedAt: acceptedAt, identity: identity, completedAt: completedAt, inviter: inviter)
    }
}

/// The bytes that name an invitation. `field`: where its identifier stands.
func invitationName(_ text: String, _ field: String = "identifier") throws(ServiceError) -> [UInt8] {
    guard let name = [UInt8](hexadecimal: text), name.count == RecordKeys.invitationBytes else {
        throw ServiceError(.malformedRequest, "\(field) is “\(text.prefix(64))”, not the identifier of an invitation")
    }
    return name
}
