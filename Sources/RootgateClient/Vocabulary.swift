public import Core
public import Transport

// The types of other modules that a program with `import RootgateClient` needs.

/// The 32 bytes of a SHA-256 hash; a person's root hash is one.
public typealias Digest = Core.Digest
/// What the service decides about one proof.
public typealias Verdict = Core.Verdict
/// The only error that the client throws: a code, a reason for people, a number.
public typealias ServiceError = Core.ServiceError
/// A collaboration's name: 1 to 128 bytes of UTF-8 without control characters.
public typealias CollaborationIdentifier = Core.CollaborationIdentifier
/// Sixteen bytes that identify a change. The service applies a change that is sent again only once.
public typealias MutationIdentifier = Core.MutationIdentifier
/// The sequence of a change in the change log, and the number of things that it changed.
public typealias MutationReceipt = Core.MutationReceipt
/// A change of collaborations or root sets, with its identifier.
public typealias Mutation = Core.Mutation
/// What a mutation changes.
public typealias Change = Core.Change
/// A mutation as the change log keeps it.
public typealias LoggedMutation = Core.LoggedMutation
/// The policy of a collaboration, which says what its devices sign.
public typealias ProofPolicy = Core.ProofPolicy
/// How a signature is encoded.
public typealias SignatureFormat = Core.SignatureFormat
/// A device's key, its place in the person's Merkle tree, and a signature.
public typealias SignedIdentityProof = Core.SignedIdentityProof
/// A host and a port.
public typealias Endpoint = Transport.Endpoint

/// A proof and the collaboration that its device wants to open.
public struct AccessRequest: Sendable {
    /// The collaboration that the device wants to open.
    public var collaboration: CollaborationIdentifier
    /// The device's proof.
    public var proof: SignedIdentityProof

    /// A proof for a collaboration.
    public init(collaboration: CollaborationIdentifier, proof: SignedIdentityProof) {
        self.collaboration = collaboration
        self.proof = proof
    }
}

/// What the service decided about one proof.
public struct AccessDecision: Hashable, Sendable {
    /// Whether the proof holds, and if not, why.
    public let verdict: Verdict
    /// The proof's root hash, if it was requested and no earlier check has failed.
    public let rootHash: Digest?
}

/// Challenges and how long each is valid from when it was issued.
public struct IssuedChallenges: Hashable, Sendable {
    /// What devices sign, byte by byte.
    public let challenges: [[UInt8]]
    /// How long each challenge is valid from when it was issued, in milliseconds.
    public let validMilliseconds: UInt64
}

/// A collaboration as the service lists it.
public struct CollaborationState: Hashable, Sendable {
    /// The collaboration's name.
    public let identifier: CollaborationIdentifier
    /// What its devices have to sign.
    public let policy: ProofPolicy
    /// How many root hashes are in its set.
    public let rootCount: UInt64
}

/// One page of a listing.
public struct ListPage<Item: Sendable>: Sendable {
    /// The items of the page, in the listing's order.
    public let items: [Item]
    /// Whether the listing goes on behind the last item.
    public let hasMore: Bool
}

/// The service's description of itself.
public struct ServiceDescription: Sendable {
    /// The version of the protocol that is spoken.
    public let version: UInt8
    /// The name of the service's software.
    public let software: String
    /// Limits by their numbers, as PROTOCOL.md lists them.
    public let limits: [UInt16: UInt64]
}
