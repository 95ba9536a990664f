public import Core

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
