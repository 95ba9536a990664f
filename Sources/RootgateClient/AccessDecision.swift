public import Core

/// What the service decided about one proof.
public struct AccessDecision: Hashable, Sendable {
    /// Whether the proof holds, and if not, why.
    public let verdict: Verdict
    /// The proof's root hash, if it was requested and no earlier check has failed.
    public let rootHash: Digest?
}
