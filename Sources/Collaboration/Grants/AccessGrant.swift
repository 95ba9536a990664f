import Core

/// A short-lived token that stands for a granted proof, so that the device need not prove itself for every step.
/// `GrantLayout` has the fields.
public struct AccessGrant: Hashable, Sendable, Codable {
    /// Bytes of a grant, exactly.
    public static let byteCount = GrantLayout.byteCount

    public let bytes: [UInt8]

    /// `nil` unless there are as many bytes as a grant has. Only the service can tell whether the grant is valid.
    public init?(bytes: [UInt8]) {
        guard bytes.count == AccessGrant.byteCount else { return nil }
        self.bytes = bytes
    }

    /// The grant in base64url without padding: 150 characters.
    public var text: String { Base64URL.text(bytes) }

    /// `nil` unless `text` is a grant in base64url.
    public init?(text: String) {
        guard let bytes = Base64URL.bytes(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// Reads the text.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not a grant") { AccessGrant(text: $0) }
    }

    /// Writes the text.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(text)
    }
}
