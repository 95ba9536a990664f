public import Core
import Foundation

// Values of the gate as they stand in JSON.

extension Digest: Codable {
    /// Reads 64 hexadecimal characters.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let digest = Digest(hexadecimal: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not 64 hexadecimal characters")
        }
        self = digest
    }

    /// Writes 64 hexadecimal characters.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension CollaborationIdentifier: Codable {
    /// Reads a string of 1 to 128 bytes of UTF-8 without control characters.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let identifier = CollaborationIdentifier(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a collaboration's identifier")
        }
        self = identifier
    }

    /// Writes the identifier as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

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
        let container = try decoder.singleValueContainer()
        guard let account = Account(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not the name of an account")
        }
        self = account
    }

    /// Writes the name as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }

    public var description: String { name }
}

/// A person's identity in one collaboration: the root hash of the Merkle tree of the person's device keys.
/// Apple: `SWPerson.Identity`.
public struct PersonIdentity: Hashable, Sendable, Codable {
    public let rootHash: Digest

    public init(rootHash: Digest) {
        self.rootHash = rootHash
    }

    /// Reads the root hash in hexadecimal.
    public init(from decoder: any Decoder) throws {
        rootHash = try Digest(from: decoder)
    }

    /// Writes the root hash in hexadecimal.
    public func encode(to encoder: any Encoder) throws {
        try rootHash.encode(to: encoder)
    }
}

/// The parts of a person's name.
public struct NameComponents: Hashable, Sendable, Codable {
    public var givenName: String?
    public var familyName: String?
    public var nickname: String?

    public init(givenName: String? = nil, familyName: String? = nil, nickname: String? = nil) {
        self.givenName = givenName
        self.familyName = familyName
        self.nickname = nickname
    }

    /// The name as people read it: the nickname if there is one, else given and family name.
    public var formatted: String {
        nickname ?? [givenName, familyName].compactMap { $0 }.joined(separator: " ")
    }
}

/// What a participant may do with the content.
public enum Permission: String, Hashable, Sendable, Codable, CaseIterable {
    case readOnly
    case readWrite

    /// The permission's byte in grants and records.
    package var code: UInt8 {
        switch self {
        case .readOnly: 1
        case .readWrite: 2
        }
    }

    /// The permission of that byte; `nil` if there is none.
    package init?(code: UInt8) {
        guard let permission = Permission.allCases.first(where: { $0.code == code }) else { return nil }
        self = permission
    }
}

/// What a participant is to the collaboration.
public enum ParticipantRole: String, Hashable, Sendable, Codable, CaseIterable {
    case owner
    /// May manage the collaboration beside the owner.
    case administrator
    case member

    /// The role's byte in grants and records.
    package var code: UInt8 {
        switch self {
        case .owner: 1
        case .administrator: 2
        case .member: 3
        }
    }

    /// The role of that byte; `nil` if there is none.
    package init?(code: UInt8) {
        guard let role = ParticipantRole.allCases.first(where: { $0.code == code }) else { return nil }
        self = role
    }
}
