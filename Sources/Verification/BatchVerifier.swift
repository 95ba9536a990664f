package import Core
import Hashing
import Merkle
package import RootSets
package import Signatures

/// What all verifiers of a service share.
package struct Gate: Sendable {
    package let rootSets: RootSets
    package let challenges: ChallengeBook
    package let nonces: NonceMemory
    package let signatures: SignatureEngine

    package init(
        rootSets: RootSets, challenges: ChallengeBook, nonces: NonceMemory, signatures: SignatureEngine = .libcrypto
    ) {
        self.rootSets = rootSets
        self.challenges = challenges
        self.nonces = nonces
        self.signatures = signatures
    }
}

/// Turns a batch of proofs into verdicts: one stage after the other over the
/// whole batch, cheapest first, each stage passing on only what survived it.
///
///     shape -> collaboration and its policy -> challenge or nonce -> root hash
///           -> membership -> signature -> spending the challenge or nonce
///
/// Works in memory of its own, made once, so one verifier serves one thread at
/// a time and allocates nothing for a proof. A batch is verified under one
/// snapshot of the root sets.
package final class BatchVerifier {
    /// Why a survivor of the challenge stage may pass, to be spent when it is granted.
    private enum Freshness {
        case none
        case challenge(ChallengeBook.Token)
        case nonce(NonceMemory.Fingerprint, windowSeconds: UInt32)
    }

    private let gate: Gate
    private let signatures: SignatureVerifier
    /// Positions in the batch of the proofs that are still in the running, ascending.
    private var survivors: UnsafeMutableBufferPointer<Int>
    private var survivorCount = 0
    private let lookup = CollaborationLookup()
    private let hasher = RootHasher(capacity: BatchVerifier.capacity)
    /// SHA-256 of the signed data of each survivor.
    private let dataDigests: UnsafeMutableBufferPointer<Digest>
    /// The different collaborations of the survivors, in runs, and what was found of each.
    private let names: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
    private let found: UnsafeMutableBufferPointer<CollaborationView?>
    private let views: UnsafeMutableBufferPointer<CollaborationView?>
    private let freshness: UnsafeMutableBufferPointer<Freshness>
    private let authenticator: BatchAuthenticator
    private let candidates: UnsafeMutableBufferPointer<(position: Int, data: UnsafeRawPointer)>
    private let standings: UnsafeMutableBufferPointer<ChallengeBook.Standing>
    private let points: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
    private let scalars: UnsafeMutableBufferPointer<ScalarPair>
    private let checks: UnsafeMutableBufferPointer<SignatureCheck>
    private let outcomes: UnsafeMutableBufferPointer<SignatureOutcome>
    /// Whether the survivor's key had a table already.
    private let isKnown: UnsafeMutableBufferPointer<Bool>

    /// Proofs in a batch, at most.
    package static let capacity = Limits.proofsPerPassMax

    /// Throws `internalFault` when libcrypto can't allocate.
    package init(_ gate: Gate) throws(ServiceError) {
        self.gate = gate
        signatures = try SignatureVerifier(gate.signatures)
        let capacity = BatchVerifier.capacity
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        func scratch<T>(_ initial: T) -> UnsafeMutableBufferPointer<T> {
            let buffer = UnsafeMutableBufferPointer<T>.allocate(capacity: capacity)
            buffer.initialize(repeating: initial)
            return buffer
        }
        survivors = scratch(0)
        names = scratch(nothing)
        found = scratch(nil)
        views = scratch(nil)
        freshness = scratch(.none)
        authenticator = gate.challenges.makeAuthenticator()
        candidates = .allocate(capacity: BatchAuthenticator.capacity)
        standings = scratch(.forged)
        points = scratch(nothing)
        scalars = scratch(ScalarPair())
        dataDigests = scratch(.zero)
        checks = scratch(SignatureCheck(point: nothing, scalars: ScalarPair(), digest: .zero))
        outcomes = scratch(.invalid)
        isKnown = scratch(false)
    }

    deinit {
        // All elements are trivial.
        survivors.deallocate()
        names.deallocate()
        found.deallocate()
        views.deallocate()
        freshness.deallocate()
        candidates.deallocate()
        standings.deallocate()
        points.deallocate()
        scalars.deallocate()
        dataDigests.deallocate()
        checks.deallocate()
        outcomes.deallocate()
        isKnown.deallocate()
    }

    /// The verdict of every signed proof, and its root hash where one was computed (else zero).
    ///
    /// `proofs`: at most `capacity`; `verdicts` and `roots` as long as `proofs`.
    /// Throws when the service can't answer (storage, memory): then no verdict counts.
    package func verify(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, verdicts: UnsafeMutableBufferPointer<Verdict>,
        roots: UnsafeMutableBufferPointer<Digest>
    ) throws(ServiceError) {
        begin(proofs, roots)
        filter(proofs, verdicts) { verifier, position in verifier.judgeShape(of: proofs[position], at: position) }
        try gate.rootSets.read { snapshot throws(ServiceError) in
            try findCollaborations(of: proofs, in: snapshot, verdicts)
            judgeFreshness(of: proofs, verdicts)
            computeRoots(of: proofs, into: roots)
            try filterMembers(in: snapshot, roots, verdicts)
        }
        try filterSigned(proofs, verdicts)
        gate.challenges.withMemory { memory in
            filter(proofs, verdicts) { verifier, position in verifier.spend(position, &memory) }
        }
        settle(as: .granted, verdicts)
        offerKeys()
    }

    /// The verdict of every proof without looking at a signature: the root hash and its membership only.
    ///
    /// The same contract as `verify`; the verdict of a proof that holds is `included`.
    package func verifyInclusion(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, verdicts: UnsafeMutableBufferPointer<Verdict>,
        roots: UnsafeMutableBufferPointer<Digest>
    ) throws(ServiceError) {
        begin(proofs, roots)
        filter(proofs, verdicts) { verifier, position in verifier.judgePath(of: proofs[position], at: position) }
        try gate.rootSets.read { snapshot throws(ServiceError) in
            try findCollaborations(of: proofs, in: snapshot, verdicts)
            computeRoots(of: proofs, into: roots)
            try filterMembers(in: snapshot, roots, verdicts)
        }
        settle(as: .included, verdicts)
    }

    // MARK: Stages

    private func begin(_ proofs: UnsafeBufferPointer<BorrowedProof>, _ roots: UnsafeMutableBufferPointer<Digest>) {
        precondition(proofs.count <= BatchVerifier.capacity)
        survivorCount = proofs.count
        for position in proofs.indices {
            survivors[position] = position
            roots[position] = .zero
        }
    }

    /// Runs a stage: a proof for which `judge` returns a verdict drops out with it.
    private func filter(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>,
        _ judge: (BatchVerifier, Int) -> Verdict?
    ) {
        var kept = 0
        for index in 0..<survivorCount {
            let position = survivors[index]
            if let refusal = judge(self, position) {
                verdicts[position] = refusal
            } else {
                survivors[kept] = position
                kept += 1
            }
        }
        survivorCount = kept
    }

    /// Lengths, counts and the encodings of key and path.
    private func judgePath(of proof: BorrowedProof, at position: Int) -> Verdict? {
        guard proof.inclusionHashCount <= Limits.inclusionHashesMax,
            proof.data.count <= Limits.signedDataBytesMax
        else { return .malformed }
        guard let point = PublicKeyEncoding.point(in: proof.publicKey) else { return .badKey }
        guard RootHash.isValid(index: proof.publicKeyIndex, levels: proof.inclusionHashCount) else { return .badIndex }
        points[position] = point
        return nil
    }

    /// `judgePath`, and the encoding of the signature.
    private func judgeShape(of proof: BorrowedProof, at position: Int) -> Verdict? {
        guard let format = SignatureFormat(rawValue: proof.signatureFormat) else { return .malformed }
        if let refusal = judgePath(of: proof, at: position) { return refusal }
        guard let pair = SignatureEncoding.scalars(in: proof.signature, format: format) else {
            return .badSignatureEncoding
        }
        scalars[position] = pair
        return nil
    }

    /// Looks every collaboration up once for each run of proofs that name it.
    private func findCollaborations(
        of proofs: UnsafeBufferPointer<BorrowedProof>, in snapshot: borrowing Snapshot,
        _ verdicts: UnsafeMutableBufferPointer<Verdict>
    ) throws(ServiceError) {
        var nameCount = 0
        for index in 0..<survivorCount {
            let name = proofs[survivors[index]].collaboration
            if nameCount == 0 || !isSame(name, names[nameCount - 1]) {
                names[nameCount] = name
                nameCount += 1
            }
        }
        try lookup.find(
            UnsafeBufferPointer(rebasing: names[..<nameCount]), for: survivorCount, in: snapshot, into: found)
        var kept = 0
        var run = 0
        for index in 0..<survivorCount {
            let position = survivors[index]
            if !isSame(proofs[position].collaboration, names[run]) { run += 1 }
            if let view = found[run] {
                views[position] = view
                survivors[kept] = position
                kept += 1
            } else {
                verdicts[position] = .unknownCollaboration
            }
        }
        survivorCount = kept
    }

    /// Whether two names are the same bytes at the same place.
    private func isSame(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        a.baseAddress == b.baseAddress && a.count == b.count
    }

    /// What the collaborations' policies ask of the signed data.
    private func judgeFreshness(
        of proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>
    ) {
        let now = gate.challenges.now
        var start = 0
        while start < survivorCount {
            judgeChallenges(of: proofs, start..<min(start + BatchAuthenticator.capacity, survivorCount), now)
            start += BatchAuthenticator.capacity
        }
        filter(proofs, verdicts) { verifier, position in verifier.freshnessVerdict(of: proofs[position], at: position) }
        // One visit to the memory for the whole batch.
        gate.challenges.withMemory { memory in
            filter(proofs, verdicts) { verifier, position in
                guard case .challenge(let token) = verifier.freshness[position] else { return nil }
                return memory.isSpent(token) ? .challengeReplayed : nil
            }
        }
    }

    /// Judges those of some survivors that need a challenge and have data of its size.
    private func judgeChallenges(of proofs: UnsafeBufferPointer<BorrowedProof>, _ range: Range<Int>, _ now: UInt64) {
        var count = 0
        for index in range {
            let position = survivors[index]
            standings[position] = .forged
            guard case .challenge = views[position]?.policy, let data = proofs[position].data.baseAddress,
                proofs[position].data.count == ChallengeBook.challengeBytes
            else { continue }
            candidates[count] = (position, data)
            count += 1
        }
        guard count > 0 else { return }
        gate.challenges.judge(count, with: authenticator, now: now, candidate: { candidates[$0].data }) {
            place, standing in
            standings[candidates[place].position] = standing
        }
    }

    private func freshnessVerdict(of proof: BorrowedProof, at position: Int) -> Verdict? {
        switch views[position]?.policy {
        case .challenge:
            switch standings[position] {
            case .open(let token):
                freshness[position] = .challenge(token)
                return nil
            case .forged: return .challengeForged
            case .expired: return .challengeExpired
            case .replayed: return .challengeReplayed
            }
        case .deviceNonce(let windowSeconds):
            guard proof.data.count >= Limits.deviceNonceBytesMin else { return .badNonce }
            let fingerprint = NonceMemory.Fingerprint(
                leaf: SHA256.hash(proof.publicKey), nonceDigest: SHA256.hash(proof.data))
            guard !gate.nonces.isSpent(fingerprint) else { return .nonceReplayed }
            freshness[position] = .nonce(fingerprint, windowSeconds: windowSeconds)
            return nil
        case nil:
            return .unknownCollaboration
        }
    }

    private func computeRoots(
        of proofs: UnsafeBufferPointer<BorrowedProof>, into roots: UnsafeMutableBufferPointer<Digest>
    ) {
        hasher.compute(of: proofs, selection: selection, into: roots)
    }

    private func filterMembers(
        in snapshot: borrowing Snapshot, _ roots: UnsafeMutableBufferPointer<Digest>,
        _ verdicts: UnsafeMutableBufferPointer<Verdict>
    ) throws(ServiceError) {
        var kept = 0
        for position in selection {
            if let view = views[position] { snapshot.prefetch(roots[position], in: view) }
        }
        for index in 0..<survivorCount {
            let position = survivors[index]
            if let view = views[position], try snapshot.contains(roots[position], in: view) {
                survivors[kept] = position
                kept += 1
            } else {
                verdicts[position] = .notParticipant
            }
        }
        survivorCount = kept
    }

    /// The positions of the survivors.
    private var selection: UnsafeBufferPointer<Int> { UnsafeBufferPointer(rebasing: survivors[..<survivorCount]) }

    private func filterSigned(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>
    ) throws(ServiceError) {
        hasher.hash(selection, into: dataDigests) { proofs[$0].data }
        for index in 0..<survivorCount {
            let position = survivors[index]
            checks[index] = SignatureCheck(
                point: points[position], scalars: scalars[position], digest: dataDigests[position])
        }
        try signatures.verify(
            UnsafeBufferPointer(rebasing: checks[..<survivorCount]),
            into: UnsafeMutableBufferPointer(rebasing: outcomes[..<survivorCount]))
        var kept = 0
        for index in 0..<survivorCount {
            let position = survivors[index]
            switch outcomes[index] {
            case .valid:
                isKnown[position] = signatures.wasKnown(index)
                survivors[kept] = position
                kept += 1
            case .invalid: verdicts[position] = .badSignature
            case .badKey: verdicts[position] = .badKey
            }
        }
        survivorCount = kept
    }

    /// Only what would be granted spends its challenge or nonce, so nobody can burn another's.
    private func spend(_ position: Int, _ memory: inout ChallengeBook.Memory) -> Verdict? {
        switch freshness[position] {
        case .none: return .challengeForged
        case .challenge(let token):
            switch memory.spend(token) {
            case .spent: return nil
            case .replayed: return .challengeReplayed
            case .expired: return .challengeExpired
            case .memoryFull: return .replayMemoryFull
            }
        case .nonce(let fingerprint, let windowSeconds):
            switch gate.nonces.spend(fingerprint, windowSeconds: windowSeconds) {
            case .spent: return nil
            case .replayed: return .nonceReplayed
            case .memoryFull: return .replayMemoryFull
            }
        }
    }

    /// Keys of granted proofs that had no table may get one. (The names have been looked up: their memory is free.)
    private func offerKeys() {
        var count = 0
        for position in selection where !isKnown[position] {
            names[count] = points[position]
            count += 1
        }
        signatures.granted(UnsafeBufferPointer(rebasing: names[..<count]))
    }

    private func settle(as verdict: Verdict, _ verdicts: UnsafeMutableBufferPointer<Verdict>) {
        for index in 0..<survivorCount {
            verdicts[survivors[index]] = verdict
        }
    }
}
