package import RootSets
package import Signatures

/// The state that all verifiers of a service share.
package struct VerificationResources: Sendable {
    /// The sets of root hashes.
    package let rootSets: RootSets
    /// Issues and judges challenges, and remembers the spent ones.
    package let challenges: ChallengeBook
    /// Remembers the device nonces that were spent.
    package let nonces: NonceMemory
    /// Verifies signatures.
    package let signatures: SignatureEngine
    /// Where slow passes are reported; `nil`: nowhere.
    package let slowPasses: SlowPassLog?
    /// Whether each worker counts how long its passes take.
    package let metersPasses: Bool
    /// Keeps refused proofs; `nil`: none are kept.
    package let sample: ProofSample?

    package init(
        rootSets: RootSets, challenges: ChallengeBook, nonces: NonceMemory, signatures: SignatureEngine = .libcrypto,
        slowPasses: SlowPassLog? = nil, metersPasses: Bool = false, sample: ProofSample? = nil
    ) {
        self.rootSets = rootSets
        self.challenges = challenges
        self.nonces = nonces
        self.signatures = signatures
        self.slowPasses = slowPasses
        self.metersPasses = metersPasses
        self.sample = sample
    }
}
