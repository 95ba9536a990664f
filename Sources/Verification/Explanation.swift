package import Core

/// Why a proof is refused, or what of it holds: the way from the public key to the root hash, and each check that a
/// service makes, in its order, with what is known of it here.
///
/// It says nothing that was not computed. What only a service knows is `unchecked`, with the reason.
package struct Explanation: Equatable, Sendable {
    /// What a service checks, in its order: PROTOCOL.md, "Verdicts". Its eighth check is two of these.
    package enum Check: String, CaseIterable, Sendable {
        case lengths
        case keyEncoding = "key-encoding"
        case index
        case signatureEncoding = "signature-encoding"
        case collaboration
        case freshness
        case membership
        case curve
        case signature
        case spending

        /// The check in a few words for people, as PROTOCOL.md has them.
        package var title: String {
            switch self {
            case .lengths: "lengths"
            case .keyEncoding: "the key's encoding"
            case .index: "the index"
            case .signatureEncoding: "the signature's encoding"
            case .collaboration: "the collaboration"
            case .freshness: "the challenge or nonce"
            case .membership: "membership"
            case .curve: "the key is a point of the curve"
            case .signature: "the signature"
            case .spending: "spending the challenge or nonce"
            }
        }
    }

    /// What a check made here came to.
    package enum Outcome: Equatable, Sendable {
        case passed
        /// The verdict of a service whose earlier checks have passed.
        case failed(Verdict)
        case unchecked
    }

    /// One check, its outcome, and a sentence why.
    package struct Finding: Equatable, Sendable {
        package let check: Check
        package let outcome: Outcome
        package let reason: String
    }

    /// One level of the tree on the way to the root. The leaf's level is the first.
    package struct Level: Equatable, Sendable {
        /// The node on the way, and what it is hashed with.
        package let node: Digest
        package let sibling: Digest
        /// The bit of the index: whether the node is on the right, and the sibling on the left.
        package let isRight: Bool
        /// SHA-256 of the two, the left one first.
        package let parent: Digest
    }

    /// SHA-256 of the public key as it was sent.
    package let leaf: Digest
    /// The levels between the leaf and the root; `nil` when the index or the number of inclusion hashes allows none.
    package let levels: [Level]?
    /// One finding for each check, in the order of `Check.allCases`.
    package let findings: [Finding]

    /// The root hash that the proof leads to; `nil` when `levels` is.
    package var root: Digest? { levels.map { $0.last?.parent ?? leaf } }

    /// The first check that has failed, and its verdict; `nil` when none has.
    package var failure: (check: Check, verdict: Verdict)? {
        for finding in findings {
            if case .failed(let verdict) = finding.outcome { return (finding.check, verdict) }
        }
        return nil
    }

    /// The checks that were not made, in the service's order.
    package var unchecked: [Check] { findings.filter { $0.outcome == .unchecked }.map(\.check) }

    /// The checks before the first failed one that were not made: one of them may fail, too, and then it decides.
    package var undecided: [Check] {
        guard let (failed, _) = failure else { return [] }
        let before = Check.allCases.prefix { $0 != failed }
        return unchecked.filter { before.contains($0) }
    }

    /// What was found out about a check.
    package func finding(_ check: Check) -> Finding? { findings.first { $0.check == check } }
}

extension Explanation {
    /// What a service's verdict tells of one check.
    package enum Told: String, Sendable {
        case passed
        case failed
        /// This check or another one of this kind has failed: the verdict does not tell which.
        case perhapsFailed = "perhaps-failed"
        /// The verdict says nothing about it.
        case silent = "not-told"
    }

    /// The checks that can give a service's verdict on this proof; none when every check has passed, or when no verify
    /// gives the verdict.
    package func checks(thatGive verdict: Verdict) -> [Check] {
        switch verdict {
        case .malformed: return [.lengths]
        case .badKey:
            // Both checks give it. The first needs nothing but the key, so it was made here.
            if case .failed = finding(.keyEncoding)?.outcome { return [.keyEncoding] }
            return [.curve]
        case .badIndex: return [.index]
        case .badSignatureEncoding: return [.signatureEncoding]
        case .unknownCollaboration: return [.collaboration]
        case .challengeForged, .challengeElsewhere, .badNonce: return [.freshness]
        case .challengeExpired, .challengeReplayed, .nonceReplayed: return [.freshness, .spending]
        case .replayMemoryFull: return [.spending]
        case .notParticipant: return [.membership]
        case .badSignature: return [.signature]
        case .granted, .included, .unlisted, .unknown: return []
        }
    }

    /// What a service's verdict on this proof tells of a check. A service makes the checks in their order, and the
    /// first one that fails decides.
    package func told(about check: Check, by verdict: Verdict) -> Told {
        if verdict == .granted { return .passed }
        let deciding = checks(thatGive: verdict)
        guard let first = deciding.first else { return .silent }
        if deciding.contains(check) { return deciding.count == 1 ? .failed : .perhapsFailed }
        return Check.allCases.prefix { $0 != first }.contains(check) ? .passed : .silent
    }
}
