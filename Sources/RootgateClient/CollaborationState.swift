public import Core

/// A collaboration as the service lists it.
public struct CollaborationState: Hashable, Sendable {
    /// The collaboration's name.
    public let identifier: CollaborationIdentifier
    /// What its devices have to sign.
    public let policy: ProofPolicy
    /// How many root hashes are in its set.
    public let rootCount: UInt64
}
