import Core

/// A person outside of any collaboration, as the app's backend names its accounts: 1 to 128 bytes of UTF-8 without
/// control characters. Shelves, invitations and scopes belong to accounts; inside a collaboration a person is a
/// `PersonIdentity`, and nobody can tell from one which account it is until the two are linked.
public struct Account: Hashable, Sendable, Codable, CustomStringConvertible {
    public let name: String

    /// `nil` unless `name` is valid.
    public init?(_ name: String) {
        guard CollaborationIdentifier.isValid(Array(name.utf8)) else { return nil }
        self.name = name
    }

    /// Accounts are the same when their bytes are, as in the records: strings are already when they look the same.
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
