import Core

/// The beginning of the identifiers that a role covers: 1 to 128 bytes of UTF-8 without control characters. `a/` covers
/// every identifier that begins with these two bytes, and no other one.
///
/// `*` alone covers every identifier. No other prefix may end with `*`, because it would not mean what it says.
public struct CollaborationPrefix: Hashable, Sendable {
    /// The prefix that covers every identifier.
    public static let every = CollaborationPrefix(checked: [UInt8(ascii: "*")])

    /// The bytes. Prefixes are compared by them: texts that Unicode calls equal are different prefixes.
    public let utf8: [UInt8]

    private init(checked utf8: [UInt8]) {
        self.utf8 = utf8
    }

    /// `nil` unless `text` is a prefix.
    public init?(_ text: String) {
        let utf8 = Array(text.utf8)
        guard CollaborationIdentifier.isValid(utf8), utf8.count == 1 || utf8.last != UInt8(ascii: "*") else {
            return nil
        }
        self.utf8 = utf8
    }
}

extension CollaborationPrefix: CustomStringConvertible {
    public var description: String { String(decoding: utf8, as: UTF8.self) }
}

extension CollaborationPrefix: Codable {
    /// Reads a string.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not the beginning of identifiers, or “*”") { CollaborationPrefix($0) }
    }

    /// Writes a string.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(description)
    }
}
