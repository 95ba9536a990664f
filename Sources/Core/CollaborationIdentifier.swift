/// A collaboration's identifier, chosen by the app: 1 to 128 bytes of UTF-8 without control characters (U+0000 to
/// U+001F, U+007F).
///
/// The storage ends an identifier with a control byte, which is unambiguous because identifiers contain none.
public struct CollaborationIdentifier: Hashable, Sendable {
    /// The identifier's UTF-8 bytes.
    public let utf8: [UInt8]

    /// `nil` unless `utf8` is a valid identifier.
    public init?(utf8: some Collection<UInt8>) {
        guard CollaborationIdentifier.isValid(utf8), String(validating: Array(utf8), as: UTF8.self) != nil else {
            return nil
        }
        self.utf8 = Array(utf8)
    }

    /// `nil` unless `text` is a valid identifier.
    public init?(_ text: String) {
        self.init(utf8: Array(text.utf8))
    }

    /// Whether `bytes` have a valid length and no control characters. This is enough for a look-up: bytes that are not
    /// UTF-8 are never stored, so they are never found.
    @inlinable
    package static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.count <= Limits.collaborationBytesMax
            && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }
}

extension CollaborationIdentifier: CustomStringConvertible {
    public var description: String { String(decoding: utf8, as: UTF8.self) }
}

extension CollaborationIdentifier: Comparable {
    /// Compares the bytes in order.
    public static func < (a: CollaborationIdentifier, b: CollaborationIdentifier) -> Bool {
        a.utf8.lexicographicallyPrecedes(b.utf8)
    }
}
