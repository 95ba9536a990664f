public import Core
public import Transport

// The words that a program with `import RootgateClient` needs, under one roof.

public typealias Digest = Core.Digest
public typealias Verdict = Core.Verdict
public typealias ServiceError = Core.ServiceError
public typealias CollaborationIdentifier = Core.CollaborationIdentifier
public typealias MutationIdentifier = Core.MutationIdentifier
public typealias MutationReceipt = Core.MutationReceipt
public typealias Mutation = Core.Mutation
public typealias Change = Core.Change
public typealias LoggedMutation = Core.LoggedMutation
public typealias ProofPolicy = Core.ProofPolicy
public typealias SignatureFormat = Core.SignatureFormat
public typealias SignedIdentityProof = Core.SignedIdentityProof
public typealias Endpoint = Transport.Endpoint

/// A proof and the collaboration whose door it knocks at.
public struct AccessRequest: Sendable {
    public var collaboration: CollaborationIdentifier
    public var proof: SignedIdentityProof

    public init(collaboration: CollaborationIdentifier, proof: SignedIdentityProof) {
        self.collaboration = collaboration
        self.proof = proof
    }
}

/// What the gate said of one proof.
public struct AccessDecision: Hashable, Sendable {
    public let verdict: Verdict
    /// The computed root hash, when it was asked for and the proof got far enough.
    public let rootHash: Digest?
}

/// Challenges and how long each is valid from when it was issued.
public struct IssuedChallenges: Hashable, Sendable {
    public let challenges: [[UInt8]]
    public let validMilliseconds: UInt64
}

/// A collaboration as the service lists it.
public struct CollaborationState: Hashable, Sendable {
    public let identifier: CollaborationIdentifier
    public let policy: ProofPolicy
    public let rootCount: UInt64
}

/// One page of a listing.
public struct ListPage<Item: Sendable>: Sendable {
    public let items: [Item]
    /// Whether the listing goes on behind the last item.
    public let hasMore: Bool
}

/// What a service says of itself.
public struct ServiceDescription: Sendable {
    public let version: UInt8
    public let software: String
    /// Limits by their numbers, as PROTOCOL.md lists them.
    public let limits: [UInt16: UInt64]
}
