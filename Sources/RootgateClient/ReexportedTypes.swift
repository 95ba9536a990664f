public import Core
public import TLS
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

/// How a client encrypts its connections, whom it trusts, and who it is.
public typealias TLSOptions = TLS.TLSOptions
