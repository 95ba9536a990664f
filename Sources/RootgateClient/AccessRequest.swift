public import Core

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
