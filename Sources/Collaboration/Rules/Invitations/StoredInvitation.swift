import Core
import Foundation

/// `t`: an invitation.
struct StoredInvitation: Codable {
    var role: ParticipantRole
    var permission: Permission?
    var createdAt: Date
    var expiresAt: Date?
    var isRevoked = false
    var acceptedBy: Account?
    var acceptedAt: Date?
}

extension RuleContext {
    /// Names the token's invitation in the records. The token can't be computed from it.
    func name(of token: InvitationToken) -> [UInt8] {
        Array(sha256(token.bytes).bytes.prefix(RecordKeys.invitationBytes))
    }
}

extension StoredInvitation {
    func state(at date: Date) -> InvitationState {
        if acceptedBy != nil { return .accepted }
        if isRevoked { return .revoked }
        return expiresAt.map { $0 <= date } ?? false ? .expired : .pending
    }

    func invitation(
        _ name: [UInt8], _ collaboration: CollaborationIdentifier, _ context: RuleContext
    ) -> Invitation {
        Invitation(
            identifier: name.hexadecimal, collaboration: collaboration, role: role, permission: permission,
            state: state(at: context.now), createdAt: createdAt, expiresAt: expiresAt, acceptedBy: acceptedBy,
            acceptedAt: acceptedAt)
    }
}

/// The bytes that name an invitation. `field`: where its identifier stands.
func invitationName(_ text: String, _ field: String = "identifier") throws(ServiceError) -> [UInt8] {
    guard let name = [UInt8](hexadecimal: text), name.count == RecordKeys.invitationBytes else {
        throw ServiceError(.malformedRequest, "\(field) is “\(text.prefix(64))”, not the identifier of an invitation")
    }
    return name
}
