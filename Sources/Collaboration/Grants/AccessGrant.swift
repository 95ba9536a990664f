/// A short-lived token that stands for a granted proof, so that the device need not prove itself for every step.
///
///     0  version (1: 1)   1  permission (1)   2  role (1)   3  zero (5)
///     8  expiry, milliseconds of the service's clock (8)   16  sequence of the change log (8)
///    24  collaboration (16)   40  device key (16)   56  root hash (32)   88  tag (24)
///
/// Collaboration and device key are the first 16 bytes of the SHA-256 of the identifier and of the key as it was
/// sent; the tag is HMAC-SHA256 of the 88 bytes before it, cut to 24, under a key that lives as long as the
/// service's process. So none survives a restart.
public struct AccessGrant: Hashable, Sendable, Codable {
    /// Bytes of a grant, exactly.
    public static let byteCount = 112
    package static let signedBytes = 88
    package static let tagBytes = 24
    package static let fingerprintBytes = 16

    public let bytes: [UInt8]

    /// `nil` unless there are as many bytes as a grant has. Whether it is worth something, only the service knows.
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
        let container = try decoder.singleValueContainer()
        guard let grant = AccessGrant(text: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a grant")
        }
        self = grant
    }

    /// Writes the text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
