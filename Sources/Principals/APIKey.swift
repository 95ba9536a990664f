public import Core

/// A secret by which a connection shows which principal it is: an identifier and 32 random bytes.
///
/// As text, 64 characters: `rgk_`, the identifier (16), `_`, the secret in base64url without padding (43). Whoever has
/// the text is the principal. The service stores a `KeyHash`.
public struct APIKey: Sendable {
    /// Names the key; no secret.
    public let identifier: KeyIdentifier
    let secret: [UInt8]

    private static let start = "rgk_"
    private static let secretBytes = 32

    /// Makes a fresh key.
    public static func random(_ random: RandomSource = .system) -> APIKey {
        APIKey(
            identifier: KeyIdentifier(value: random.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }),
            secret: random.bytes(secretBytes))
    }

    private init(identifier: KeyIdentifier, secret: [UInt8]) {
        self.identifier = identifier
        self.secret = secret
    }

    /// `nil` unless `text` is exactly a key's text.
    public init?(_ text: String) {
        let parts = text.utf8.dropFirst(APIKey.start.utf8.count)
        guard text.utf8.count == Limits.keyTextBytes, text.utf8.starts(with: APIKey.start.utf8),
            let identifier = KeyIdentifier(String(decoding: parts.prefix(16), as: UTF8.self)),
            parts.dropFirst(16).first == UInt8(ascii: "_"),
            let secret = Base64URL.bytes(String(decoding: parts.dropFirst(17), as: UTF8.self)),
            secret.count == APIKey.secretBytes
        else { return nil }
        self.init(identifier: identifier, secret: secret)
    }

    /// The key as text, which is the secret.
    public var text: String { "\(APIKey.start)\(identifier)_\(Base64URL.text(secret))" }
}

extension APIKey: CustomStringConvertible, CustomReflectable {
    /// The identifier without the secret, so that no message shows it by accident.
    public var description: String { "\(APIKey.start)\(identifier)" }

    /// The identifier alone.
    public var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}
