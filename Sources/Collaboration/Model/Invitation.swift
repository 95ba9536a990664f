public import Core
public import Foundation

/// The secret with which an invitation is accepted, once: 16 random bytes, chosen by the inviting person, in base64url
/// without padding (22 characters). The service keeps only its SHA-256.
public struct InvitationToken: Hashable, Sendable, Codable {
    package let bytes: [UInt8]

    /// A fresh token from the system's random source.
    public static func random() -> InvitationToken {
        InvitationToken(bytes: RandomSource.system.nameBytes())
    }

    package init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// `nil` unless `text` is a token.
    public init?(_ text: String) {
        guard let bytes = Base64URL.bytes(text), bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    public var text: String { Base64URL.text(bytes) }

    /// Reads the text.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not an invitation's token") { InvitationToken($0) }
    }

    /// Writes the text.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(text)
    }
}

/// The state of an invitation.
public enum InvitationState: String, Hashable, Sendable, Codable, CaseIterable {
    case pending, accepted, revoked, expired
}

/// An invitation as its collaboration lists it. It does not contain the token, which only the invited person has.
public struct Invitation: Hashable, Sendable, Codable {
    /// Names the invitation, for revoking it: the first 16 bytes of the token's SHA-256, in hexadecimal.
    public let identifier: String
    public let collaboration: CollaborationIdentifier
    public let role: ParticipantRole
    /// What the accepter may do; `nil`: what the share options say.
    public let permission: Permission?
    public let state: InvitationState
    public let createdAt: Date
    public let expiresAt: Date?
    public let acceptedBy: Account?
    public let acceptedAt: Date?
}

/// The result of accepting one invitation.
public struct Acceptance: Hashable, Sendable, Codable {
    /// Why an invitation can't be accepted.
    public enum Refusal: String, Hashable, Sendable, Codable, CaseIterable {
        case unknown, revoked, expired
        /// Another account has accepted it.
        case used
        /// The accepter's identity was removed from the collaboration, or is linked to another account.
        case conflict
    }

    public let token: InvitationToken
    /// `nil` when the share was accepted, now or before.
    public let refusal: Refusal?
    public let share: CollaborationHighlight?
}

/// Which shares of an account.
public enum Scope: String, Hashable, Sendable, Codable, CaseIterable {
    /// Those that the person has started.
    case `private`
    /// Those that the person was invited to and has accepted.
    case shared
}
