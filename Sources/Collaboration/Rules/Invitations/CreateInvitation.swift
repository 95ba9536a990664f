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
