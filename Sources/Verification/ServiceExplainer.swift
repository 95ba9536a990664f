package import Core
import Hashing
import RootSets

/// Explains proofs as a service sees them, and changes nothing: it spends no challenge, remembers no nonce, offers no
/// key for a table and counts no verdict.
package final class ServiceExplainer {
    private let resources: VerificationResources
    private let explainer: ProofExplainer

    /// Throws `internalFault` when libcrypto can't allocate.
    package init(_ resources: VerificationResources) throws(ServiceError) {
        self.resources = resources
        explainer = try ProofExplainer(roots: nil)
    }

    /// What a service knows of the proof's collaboration.
    fileprivate enum Place {
        /// Nobody has said which one it is.
        case unnamed
        case unknown(CollaborationIdentifier)
        case found(CollaborationSummary, isMember: Bool?)
    }

    /// Explains a proof. `index`: as for `ProofExplainer`. `collaboration`: `nil` when it is not known, or not to be
    /// looked up.
    ///
    /// Throws what the storage throws, or `internalFault` when libcrypto can't allocate.
    package func explain(
        _ proof: SignedIdentityProof, index: String?, in collaboration: CollaborationIdentifier?
    ) throws(ServiceError) -> Explanation {
        let alone = try explainer.explain(proof, index: index)
        let place = try find(collaboration, root: alone.root)
        let findings = alone.findings.map { finding in
            switch finding.check {
            case .collaboration: place.finding
            case .freshness: freshness(of: proof, alone.leaf, place)
            case .membership: place.membership ?? finding
            case .spending:
                Explanation.Finding(
                    check: .spending, outcome: .unchecked,
                    reason: "explaining spends nothing: a service does so when every other check has passed")
            case .lengths, .keyEncoding, .index, .signatureEncoding, .curve, .signature: finding
            }
        }
        return Explanation(leaf: alone.leaf, levels: alone.levels, findings: findings)
    }

    private func find(
        _ collaboration: CollaborationIdentifier?, root: Digest?
    ) throws(ServiceError) -> Place {
        guard let collaboration else { return .unnamed }
        try resources.rootSets.admit(reading: .sets)
        return try resources.rootSets.read { snapshot throws(ServiceError) in
            guard let summary = try snapshot.summary(of: collaboration) else { return .unknown(collaboration) }
            guard let root else { return .found(summary, isMember: nil) }
            return .found(summary, isMember: try snapshot.test([root], in: collaboration)?.first)
        }
    }

    // MARK: The challenge or nonce

    private func freshness(of proof: SignedIdentityProof, _ leaf: Digest, _ place: Place) -> Explanation.Finding {
        let (outcome, reason): (Explanation.Outcome, String) =
            switch place {
            case .found(let summary, _):
                switch summary.policy {
                case .challenge: challenge(proof.data)
                case .deviceNonce: nonce(proof.data, leaf)
                }
            case .unnamed, .unknown:
                (.unchecked, "the collaboration's policy is not known; as a challenge: \(challenge(proof.data).1)")
            }
        return Explanation.Finding(check: .freshness, outcome: outcome, reason: reason)
    }

    private func challenge(_ data: [UInt8]) -> (Explanation.Outcome, String) {
        guard data.count == ChallengeBook.challengeBytes else {
            return (
                .failed(.challengeForged),
                "\(data.count) bytes are no challenge, which has \(ChallengeBook.challengeBytes)"
            )
        }
        switch data.withUnsafeBytes({ resources.challenges.standing(of: $0) }) {
        case .usable: return (.passed, "this service has issued the challenge, in time, and it is not spent")
        case .forged: return (.failed(.challengeForged), "this service has not issued the challenge")
        case .expired:
            let seconds = resources.challenges.validMilliseconds / 1000
            return (.failed(.challengeExpired), "the challenge was issued more than \(seconds) s ago")
        case .issuedElsewhere:
            return (
                .failed(.challengeElsewhere),
                "the challenge was issued before this service's start, or by another service with its secret"
            )
        case .replayed: return (.failed(.challengeReplayed), "a proof with this challenge was granted")
        }
    }

    private func nonce(_ data: [UInt8], _ leaf: Digest) -> (Explanation.Outcome, String) {
        guard data.count >= Limits.deviceNonceBytesMin else {
            return (
                .failed(.badNonce), "\(data.count) bytes are too few for a nonce (\(Limits.deviceNonceBytesMin))"
            )
        }
        let fingerprint = NonceMemory.Fingerprint(leaf: leaf, nonceDigest: SHA256.hash(data))
        return resources.nonces.isSpent(fingerprint)
            ? (.failed(.nonceReplayed), "a proof with this key and this nonce was granted")
            : (.passed, "the service remembers no proof with this key and this nonce")
    }
}

extension ServiceExplainer.Place {
    fileprivate var finding: Explanation.Finding {
        let (outcome, reason): (Explanation.Outcome, String) =
            switch self {
            case .unnamed: (.unchecked, "no collaboration was looked up")
            case .unknown(let name): (.failed(.unknownCollaboration), "there is no collaboration \(name)")
            case .found(let summary, _):
                (
                    .passed,
                    "\(summary.identifier) has \(summary.rootCount) root hashes, and its proofs must sign "
                        + summary.policy.demand
                )
            }
        return Explanation.Finding(check: .collaboration, outcome: outcome, reason: reason)
    }

    /// `nil` when nothing is known.
    fileprivate var membership: Explanation.Finding? {
        guard case .found(let summary, let isMember?) = self else { return nil }
        return Explanation.Finding(
            check: .membership, outcome: isMember ? .passed : .failed(.notParticipant),
            reason: "the root hash is \(isMember ? "" : "not ")in the set of \(summary.identifier)")
    }
}

extension ProofPolicy {
    fileprivate var demand: String {
        switch self {
        case .challenge: "a challenge"
        case .deviceNonce(let seconds): "a device nonce, which is remembered for \(seconds) s"
        }
    }
}
