import Core

/// A principal's name: 1 to 128 ASCII letters, digits and `. _ - @ : /`, a letter or digit first. So two names that
/// look alike are alike, but for letters and digits that a font does not tell apart.
///
/// `anonymous` and `service` are no names: audits call others so.
public struct PrincipalName: Hashable, Sendable {
    /// The name as text.
    public let text: String

    /// `nil` unless `text` is a name.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Limits.principalNameBytesMax, let first = bytes.first, PrincipalName.isPlain(first),
            bytes.allSatisfy({ PrincipalName.isPlain($0) || PrincipalName.marks.contains($0) }),
            !["anonymous", "service"].contains(text.lowercased())
        else { return nil }
        self.text = text
    }

    private static let marks = Array("._-@:/".utf8)

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}

extension PrincipalName: CustomStringConvertible {
    public var description: String { text }
}

extension PrincipalName: Codable {
    /// Reads a string.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not the name of a principal") { PrincipalName($0) }
    }

    /// Writes a string.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(text)
    }
}
