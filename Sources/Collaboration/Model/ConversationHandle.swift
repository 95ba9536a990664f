import Core

/// What an app gets in place of a conversation: 16 random bytes for each account, conversation and app, in base64url
/// without padding (22 characters). Nothing can be learned from it, also when two apps compare theirs. The system's
/// side finds the conversation of a handle in the attribution that it reads.
public struct ConversationHandle: Hashable, Sendable, Codable, CustomStringConvertible {
    /// Bytes of a handle.
    static let byteCount = 16

    package let bytes: [UInt8]

    /// `nil` unless there are 16 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == ConversationHandle.byteCount else { return nil }
        self.bytes = bytes
    }

    /// `nil` unless `text` is a handle.
    public init?(_ text: String) {
        guard let bytes = Base64URL.bytes(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// Reads the text.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not a conversation's handle") { ConversationHandle($0) }
    }

    /// Writes the text.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(description)
    }

    public var description: String { Base64URL.text(bytes) }
}
