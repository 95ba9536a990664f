import Core

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
