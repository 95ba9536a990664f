package import Core
import Hashing
import Merkle
import Signatures

/// Explains proofs without a service. It has neither challenges nor storage.
///
/// All that needs no service is computed, also behind a check that has failed: a proof with two faults shows both.
package final class ProofExplainer {
    /// Always libcrypto: it looks whether a key is a point of the curve before it looks at the signature.
    private let signatures: SignatureVerifier
    private let roots: Set<Digest>?

    /// `roots`: the root hashes of participants; `nil` when they are not known here.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    package init(roots: Set<Digest>?) throws(ServiceError) {
        signatures = try SignatureVerifier(.libcrypto)
        self.roots = roots
    }

    /// Explains a proof. Its parts may have any length.
    ///
    /// `index`: the key's index as its sender wrote it, which may be no number that an index can be; `nil` for that of
    /// the proof. Throws `internalFault` when libcrypto can't allocate.
    package func explain(
        _ proof: SignedIdentityProof, index: String? = nil
    ) throws(ServiceError) -> Explanation {
        let leaf = SHA256.hash(proof.publicKey)
        let levels = levels(of: proof, above: leaf)
        let point = proof.publicKey.withRawBytes { PublicKeyEncoding.point(in: $0).map { [UInt8]($0) } }
        let scalars = proof.signature.withRawBytes {
            SignatureEncoding.scalars(in: $0, format: proof.signatureFormat)
        }
        let findings =
            [
                lengths(of: proof), keyEncoding(of: proof, isAccepted: point != nil),
                self.index(of: proof, written: index), signatureEncoding(of: proof, isAccepted: scalars != nil),
                Explanation.Finding(
                    check: .collaboration, outcome: .unchecked,
                    reason: "only a service knows which collaborations it has"),
                freshness(of: proof), membership(of: levels.map { $0.last?.parent ?? leaf }),
            ] + (try signature(of: proof, point, scalars)) + [
                Explanation.Finding(
                    check: .spending, outcome: .unchecked,
                    reason: "only a service remembers which challenges and nonces were spent")
            ]
        assert(findings.map(\.check) == Explanation.Check.allCases, "a check is missing or at the wrong place")
        return Explanation(leaf: leaf, levels: levels, findings: findings)
    }

    private func levels(of proof: SignedIdentityProof, above leaf: Digest) -> [Explanation.Level]? {
        let path = InclusionProof(index: proof.publicKeyIndex, siblings: proof.inclusionHashes)
        guard let nodes = path.nodes(from: leaf) else { return nil }
        return path.siblings.indices.map { level in
            Explanation.Level(
                node: nodes[level], sibling: path.siblings[level], isRight: path.isRight(atLevel: level),
                parent: nodes[level + 1])
        }
    }

    // MARK: Checks

    private func lengths(of proof: SignedIdentityProof) -> Explanation.Finding {
        let (hashes, bytes) = (proof.inclusionHashes.count, proof.data.count)
        let holds = hashes <= Limits.inclusionHashesMax && bytes <= Limits.signedDataBytesMax
        return Explanation.Finding(
            check: .lengths, outcome: holds ? .passed : .failed(.malformed),
            reason: "\(hashes) inclusion hashes (at most \(Limits.inclusionHashesMax)) and \(bytes) bytes of signed "
                + "data (at most \(Limits.signedDataBytesMax))")
    }

    private func keyEncoding(of proof: SignedIdentityProof, isAccepted: Bool) -> Explanation.Finding {
        let key = proof.publicKey
        guard isAccepted else {
            let begin = key.first.map { " that begin with \([$0].hexadecimal)" } ?? ""
            return Explanation.Finding(
                check: .keyEncoding, outcome: .failed(.badKey),
                reason: "\(key.count) bytes\(begin) are neither an X9.63 point (65 bytes from 04, 33 bytes from 02 or "
                    + "03) nor a SubjectPublicKeyInfo of P-256 (91 or 59 bytes)")
        }
        let encodings = [
            65: "an X9.63 point, uncompressed", 33: "an X9.63 point, compressed",
            91: "a SubjectPublicKeyInfo with an uncompressed point",
            59: "a SubjectPublicKeyInfo with a compressed point",
        ]
        return Explanation.Finding(
            check: .keyEncoding, outcome: .passed, reason: "\(key.count) bytes: \(encodings[key.count] ?? "a point")")
    }

    private func index(of proof: SignedIdentityProof, written text: String?) -> Explanation.Finding {
        let count = proof.inclusionHashes.count
        guard count <= Limits.inclusionHashesMax else {
            return Explanation.Finding(
                check: .index, outcome: .unchecked, reason: "no tree that is allowed has so many levels")
        }
        let last = (UInt64(1) << UInt64(count)) - 1
        let written = (text ?? "\(proof.publicKeyIndex)").prefix(bytesMax: 40)
        let isInside = proof.publicKeyIndex <= last
        return Explanation.Finding(
            check: .index, outcome: isInside ? .passed : .failed(.badIndex),
            reason: "\(written) is \(isInside ? "" : "not ")a whole number from 0 to \(last), as an index is with "
                + "\(count) inclusion hashes")
    }

    private func signatureEncoding(of proof: SignedIdentityProof, isAccepted: Bool) -> Explanation.Finding {
        let form =
            switch proof.signatureFormat {
            case .der: "strict DER of two integers that are not negative and have at most 32 bytes"
            case .raw: "two integers of 32 bytes each"
            }
        return Explanation.Finding(
            check: .signatureEncoding, outcome: isAccepted ? .passed : .failed(.badSignatureEncoding),
            reason: "\(proof.signature.count) bytes are \(isAccepted ? "" : "not ")\(form)")
    }

    /// What a service demands depends on the collaboration's policy, so no length fails here.
    private func freshness(of proof: SignedIdentityProof) -> Explanation.Finding {
        let count = proof.data.count
        let (challenge, nonce) = (ChallengeBook.challengeBytes, Limits.deviceNonceBytesMin)
        let reason =
            if count == challenge {
                "\(count) bytes, as a challenge has: only its service can tell whether it has issued it, in time, and "
                    + "whether it was spent"
            } else if count >= nonce {
                "\(count) bytes are no challenge, which has \(challenge), and can be a device nonce: only a service "
                    + "knows the collaboration's policy and whether the nonce was used"
            } else {
                "\(count) bytes are too few for a challenge (\(challenge)) and for a device nonce (\(nonce)): the "
                    + "collaboration's policy, which only a service knows, decides the verdict"
            }
        return Explanation.Finding(check: .freshness, outcome: .unchecked, reason: reason)
    }

    private func membership(of root: Digest?) -> Explanation.Finding {
        guard let root else {
            return Explanation.Finding(
                check: .membership, outcome: .unchecked, reason: "the proof leads to no root hash")
        }
        guard let roots else {
            return Explanation.Finding(
                check: .membership, outcome: .unchecked, reason: "the set of root hashes is not known here")
        }
        let isMember = roots.contains(root)
        return Explanation.Finding(
            check: .membership, outcome: isMember ? .passed : .failed(.notParticipant),
            reason: "the root hash is \(isMember ? "" : "not ")among the \(roots.count) that were given")
    }

    private func signature(
        of proof: SignedIdentityProof, _ point: [UInt8]?, _ scalars: ScalarPair?
    ) throws(ServiceError) -> [Explanation.Finding] {
        func findings(_ curve: (Explanation.Outcome, String), _ signature: (Explanation.Outcome, String))
            -> [Explanation.Finding]
        {
            [
                Explanation.Finding(check: .curve, outcome: curve.0, reason: curve.1),
                Explanation.Finding(check: .signature, outcome: signature.0, reason: signature.1),
            ]
        }
        guard let point else {
            let reason = "the key's encoding is not accepted"
            return findings((.unchecked, reason), (.unchecked, reason))
        }
        let digest = SHA256.hash(proof.data)
        // Without a signature the integers are zero, which never verify. The point is looked at all the same.
        let outcome = try point.withRawBytes { point throws(ServiceError) in
            try signatures.verify(
                SignatureCheck(point: point, scalars: scalars ?? ScalarPair(), digest: digest))
        }
        let onCurve = (Explanation.Outcome.passed, "the key is a point of P-256")
        guard scalars != nil || outcome == .badKey else {
            return findings(onCurve, (.unchecked, "the signature's encoding is not accepted"))
        }
        let signed = "with this key over SHA-256 of the signed data, \(digest)"
        switch outcome {
        case .valid: return findings(onCurve, (.passed, "it verifies \(signed)"))
        case .invalid: return findings(onCurve, (.failed(.badSignature), "it does not verify \(signed)"))
        case .badKey:
            return findings(
                (.failed(.badKey), "no point of P-256 has these coordinates"),
                (.unchecked, "there is no key to verify it with"))
        }
    }
}
