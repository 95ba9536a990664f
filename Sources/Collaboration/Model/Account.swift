import Core

/// A person outside of any collaboration, as the app's backend names its accounts: 1 to 128 bytes of UTF-8 without
/// control characters. Shelves, invitations and scopes belong to accounts. Inside a collaboration a person is a
/// `PersonIdentity`, which does not reveal the person's account. A backend may link the two.
public struct Account: Hashable, Sendable, Codable, CustomStringConvertible {
    public let name: String

    /// `nil` unless `name` is valid.
    public init?(_ name: String) {
        guard name.isName else { return nil }
        self.name = name
    }

    /// Compares the bytes of the names, as the records' keys do. Strings with different bytes can be equal in Unicode.
    public static func == (a: Account, b: Account) -> Bool { a.name.utf8.elementsEqual(b.name.utf8) }

    /// Feeds the bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(Array(name.utf8))
    }

    /// Reads the name as a string.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not the name of an account") { Account($0) }
    }

    /// Writes the name as a string.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(name)
    }

    public var description: String { name }
}
