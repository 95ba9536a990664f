package import Core
import Hashing
import Merkle
package import Signatures

/// Verifies single proofs without a service: it has no challenges and no storage. It is meant for files of recorded
/// proofs and for testing a client.
package final class StandaloneVerifier {
    private let signatures: SignatureVerifier
    private let roots: Set<Digest>?

    /// `roots`: the root hashes of participants; `nil` when membership is not checked. `engine`: what verifies the
    /// signatures.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    package init(roots: Set<Digest>?, _ engine: SignatureEngine = .libcrypto) throws(ServiceError) {
        signatures = try SignatureVerifier(engine)
        self.roots = roots
    }

    /// Verifies a proof. Returns the verdict and, when the shape is valid, the root hash. The signed data may be
    /// anything up to the limit. Without `roots`, a proof that passes has the verdict `unlisted`.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    package func verify(_ proof: SignedIdentityProof) throws(ServiceError) -> (verdict: Verdict, root: Digest?) {
        guard proof.inclusionHashes.count <= Limits.inclusionHashesMax, proof.data.count <= Limits.signedDataBytesMax
        else { return (.malformed, nil) }
        let signatures = signatures
        let roots = roots
        return try proof.publicKey.withRawBytes { key throws(ServiceError) -> (Verdict, Digest?) in
            guard let point = PublicKeyEncoding.point(in: key) else { return (.badKey, nil) }
            let path = InclusionProof(index: proof.publicKeyIndex, siblings: proof.inclusionHashes)
            guard let root = path.root(from: SHA256.hash(key)) else { return (.badIndex, nil) }
            let scalars = proof.signature.withUnsafeBytes {
                SignatureEncoding.scalars(in: $0, format: proof.signatureFormat)
            }
            guard let scalars else { return (.badSignatureEncoding, root) }
            if let roots, !roots.contains(root) { return (.notParticipant, root) }
            let check = SignatureCheck(point: point, scalars: scalars, digest: SHA256.hash(proof.data))
            switch try signatures.verify(check) {
            case .valid: return (roots == nil ? .unlisted : .granted, root)
            case .invalid: return (.badSignature, root)
            case .badKey: return (.badKey, root)
            }
        }
    }
}
