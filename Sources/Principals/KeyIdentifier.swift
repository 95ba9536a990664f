import Core

/// Names an API key: 8 random bytes, 16 hexadecimal characters. It is no secret.
public struct KeyIdentifier: Hashable, Sendable {
    let value: UInt64

    init(value: UInt64) {
        self.value = value
    }

    /// `nil` unless `text` is 16 lower-case hexadecimal characters.
    public init?(_ text: String) {
        guard text.utf8.count == 16, let bytes = [UInt8](hexadecimal: text), bytes.hexadecimal == text else {
            return nil
        }
        value = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

extension KeyIdentifier: CustomStringConvertible {
    public var description: String { bigEndianBytes(value).hexadecimal }
}

extension KeyIdentifier: Codable {
    /// Reads a string.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not the identifier of a key, 16 hexadecimal characters") { KeyIdentifier($0) }
    }

    /// Writes a string.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(description)
    }
}
