package import Core
import Hashing
import Merkle
import RootSets
import Signatures

/// Turns a batch of proofs into verdicts. Each stage judges all proofs that the stages before have not refused; the
/// cheapest stage comes first.
///
///     shape -> collaboration and its policy -> challenge or nonce -> root hash
///           -> membership -> signature -> spending the challenge or nonce
///
/// Works in memory of its own, made once, so that it allocates nothing for a proof. It serves one thread at a time. A
/// batch is verified under one snapshot of the root sets.
package final class BatchVerifier {
    /// What makes a survivor's signed data fresh, to be spent when the proof is granted.
    private enum Freshness: BitwiseCopyable {
        case none
        case challenge(ChallengeBook.Token)
        case nonce(NonceMemory.Fingerprint, windowSeconds: UInt32)
    }

    private static var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
    private static var noCheck: SignatureCheck { SignatureCheck(point: noBytes, scalars: ScalarPair(), digest: .zero) }

    private let resources: VerificationResources
    private let signatures: SignatureVerifier
    /// Positions in the batch of the proofs that no stage has refused yet, ascending.
    private let survivors = ScratchBuffer<Int>(repeating: 0, count: BatchVerifier.capacity)
    private var survivorCount = 0
    /// Whether a batch is being verified.
    private var isBusy = false
    private let lookup = CollaborationLookup()
    private let hasher = RootHasher(capacity: BatchVerifier.capacity)
    /// SHA-256 of the signed data of each survivor.
    private let dataDigests = ScratchBuffer<Digest>(repeating: .zero, count: BatchVerifier.capacity)
    /// The name that each run of survivors has in common, and what was found of it.
    private let names = ScratchBuffer<UnsafeRawBufferPointer>(
        repeating: BatchVerifier.noBytes, count: BatchVerifier.capacity)
    private let found = ScratchBuffer<CollaborationView?>(repeating: nil, count: BatchVerifier.capacity)
    private let viewMemory = ScratchBuffer<CollaborationView?>(repeating: nil, count: BatchVerifier.capacity)
    /// Read through the pointer: the compiler does not inline the buffer's accessor where a read may be followed by a
    /// throw.
    private var views: UnsafeMutablePointer<CollaborationView?> { viewMemory.baseAddress }
    private let freshness = ScratchBuffer<Freshness>(repeating: .none, count: BatchVerifier.capacity)
    private let authenticator: BatchAuthenticator
    private let candidates: ScratchBuffer<(position: Int, data: UnsafeRawPointer)>
    private let standings = ScratchBuffer<ChallengeBook.Standing>(repeating: .forged, count: BatchVerifier.capacity)
    private let points = ScratchBuffer<UnsafeRawBufferPointer>(
        repeating: BatchVerifier.noBytes, count: BatchVerifier.capacity)
    private let scalars = ScratchBuffer<ScalarPair>(repeating: ScalarPair(), count: BatchVerifier.capacity)
    private let checks = ScratchBuffer<SignatureCheck>(repeating: BatchVerifier.noCheck, count: BatchVerifier.capacity)
    private let outcomes = ScratchBuffer<SignatureOutcome>(repeating: .invalid, count: BatchVerifier.capacity)
    /// Whether the survivor's key had a table already.
    private let isKnown = ScratchBuffer<Bool>(repeating: false, count: BatchVerifier.capacity)

    private var stopwatch: SlowPassLog.Stopwatch

    /// Proofs in a batch, at most.
    package static let capacity = Limits.proofsPerPassMax

    /// Throws `internalFault` when libcrypto can't allocate.
    package init(_ resources: VerificationResources) throws(ServiceError) {
        self.resources = resources
        signatures = try SignatureVerifier(resources.signatures)
        authenticator = resources.challenges.makeAuthenticator()
        candidates = ScratchBuffer(uninitializedCount: BatchAuthenticator.capacity)
        stopwatch = SlowPassLog.Stopwatch(resources.slowPasses)
    }

    /// The verdict of every signed proof, and its root hash where one was computed (else zero).
    ///
    /// `proofs`: at most `capacity`; `verdicts` and `roots` as long as `proofs`.
    /// Throws when the service can't answer (storage, memory): then no verdict counts.
    package func verify(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, verdicts: UnsafeMutableBufferPointer<Verdict>,
        roots: UnsafeMutableBufferPointer<Digest>
    ) throws(ServiceError) {
        begin(proofs, verdicts, roots)
        defer { isBusy = false }
        filter(verdicts) { judgeShape(of: proofs[$1], at: $1) }
        stopwatch.lap("shape")
        try resources.rootSets.read { snapshot throws(ServiceError) in
            try findCollaborations(of: proofs, in: snapshot, verdicts)
            stopwatch.lap("collaboration")
            judgeFreshness(of: proofs, verdicts)
            stopwatch.lap("challenge")
            computeRoots(of: proofs, into: roots)
            stopwatch.lap("root")
            try filterMembers(in: snapshot, roots, verdicts)
        }
        stopwatch.lap("membership")
        try filterSigned(proofs, verdicts)
        stopwatch.lap("signature")
        resources.challenges.withMemory { memory in
            filter(verdicts) { spend($1, &memory) }
        }
        settle(as: .granted, verdicts)
        offerKeys()
        stopwatch.lap("spend")
        stopwatch.finish(proofs.count)
    }

    /// The verdict of every proof without looking at a signature: the root hash and its membership only.
    ///
    /// The same contract as `verify`; the verdict of a proof that holds is `included`.
    package func verifyInclusion(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, verdicts: UnsafeMutableBufferPointer<Verdict>,
        roots: UnsafeMutableBufferPointer<Digest>
    ) throws(ServiceError) {
        begin(proofs, verdicts, roots)
        defer { isBusy = false }
        filter(verdicts) { judgePath(of: proofs[$1], at: $1) }
        stopwatch.lap("shape")
        try resources.rootSets.read { snapshot throws(ServiceError) in
            try findCollaborations(of: proofs, in: snapshot, verdicts)
            stopwatch.lap("collaboration")
            computeRoots(of: proofs, into: roots)
            stopwatch.lap("root")
            try filterMembers(in: snapshot, roots, verdicts)
        }
        stopwatch.lap("membership")
        settle(as: .included, verdicts)
        stopwatch.finish(proofs.count)
    }

    // MARK: Stages

    private func begin(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>,
        _ roots: UnsafeMutableBufferPointer<Digest>
    ) {
        precondition(!isBusy, "a verifier is used for two batches at a time")
        precondition(proofs.count <= BatchVerifier.capacity, "a batch has more proofs than its capacity")
        precondition(
            verdicts.count == proofs.count && roots.count == proofs.count, "there is not one verdict and root a proof")
        isBusy = true
        stopwatch.start()
        survivorCount = proofs.count
        for position in proofs.indices {
            survivors[position] = position
            roots[position] = .zero
        }
    }

    /// Runs a stage: `judge` gets each survivor's place among the survivors and its position in the batch, and returns
    /// the verdict that refuses it, or `nil` when it stays.
    ///
    /// Throws what `judge` throws: then the survivors are as they were. Inlined, so that `judge` is no call.
    @inline(__always)
    private func filter<E>(
        _ verdicts: UnsafeMutableBufferPointer<Verdict>,
        _ judge: (_ place: Int, _ position: Int) throws(E) -> Verdict?
    ) throws(E) {
        let count = survivorCount
        var kept = 0
        for place in 0..<count {
            let position = survivors[place]
            assert(
                place == 0 || kept == 0 || survivors[kept - 1] < position, "the survivors are not in ascending order")
            if let refusal = try judge(place, position) {
                verdicts[position] = refusal
            } else {
                survivors[kept] = position
                kept += 1
            }
        }
        precondition(survivorCount == count && kept <= count, "a stage ran inside another")
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
            UnsafeBufferPointer(names.prefix(nameCount)), for: survivorCount, in: snapshot, into: found.elements)
        var run = 0
        filter(verdicts) { _, position in
            if !isSame(proofs[position].collaboration, names[run]) { run += 1 }
            assert(run < nameCount, "a name was found that was not looked up")
            views[position] = found[run]
            return views[position] == nil ? .unknownCollaboration : nil
        }
    }

    /// Whether two names are the same bytes at the same place.
    private func isSame(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        a.baseAddress == b.baseAddress && a.count == b.count
    }

    /// Judges the signed data as the collaborations' policies demand.
    private func judgeFreshness(
        of proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>
    ) {
        let now = resources.challenges.now
        var start = 0
        while start < survivorCount {
            judgeChallenges(of: proofs, start..<min(start + BatchAuthenticator.capacity, survivorCount), now)
            start += BatchAuthenticator.capacity
        }
        filter(verdicts) { freshnessVerdict(of: proofs[$1], at: $1) }
        // The lock of the memory is taken once for the whole batch.
        resources.challenges.withMemory { memory in
            filter(verdicts) { _, position in
                guard case .challenge(let token) = freshness[position] else { return nil }
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
        precondition(count <= candidates.count, "more challenges are judged at once than there is room for")
        resources.challenges.judge(count, with: authenticator, now: now, candidate: { candidates[$0].data }) {
            place, standing in
            standings[candidates[place].position] = standing
        }
    }

    private func freshnessVerdict(of proof: BorrowedProof, at position: Int) -> Verdict? {
        switch views[position]?.policy {
        case .challenge:
            switch standings[position] {
            case .usable(let token):
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
            guard !resources.nonces.isSpent(fingerprint) else { return .nonceReplayed }
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
        for position in selection {
            if let view = views[position] { snapshot.prefetch(roots[position], in: view) }
        }
        try filter(verdicts) { _, position throws(ServiceError) in
            guard let view = views[position] else { return .notParticipant }
            return try snapshot.contains(roots[position], in: view) ? nil : .notParticipant
        }
    }

    /// The positions of the survivors.
    private var selection: UnsafeBufferPointer<Int> { UnsafeBufferPointer(survivors.prefix(survivorCount)) }

    private func filterSigned(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>
    ) throws(ServiceError) {
        hasher.hash(selection, into: dataDigests.elements) { proofs[$0].data }
        for place in 0..<survivorCount {
            let position = survivors[place]
            checks[place] = SignatureCheck(
                point: points[position], scalars: scalars[position], digest: dataDigests[position])
        }
        try signatures.verify(
            UnsafeBufferPointer(checks.prefix(survivorCount)), into: outcomes.prefix(survivorCount))
        filter(verdicts) { place, position in
            switch outcomes[place] {
            case .valid:
                isKnown[position] = signatures.wasKnown(place)
                return nil
            case .invalid: return .badSignature
            case .badKey: return .badKey
            }
        }
    }

    /// Spends the challenge or nonce of a proof that passed all other stages. A proof that was refused spends nothing,
    /// so nobody can use up another's challenge.
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
            switch resources.nonces.spend(fingerprint, windowSeconds: windowSeconds) {
            case .spent: return nil
            case .replayed: return .nonceReplayed
            case .memoryFull: return .replayMemoryFull
            }
        }
    }

    /// Offers the keys of granted proofs that had no table to the known keys. (Uses the memory of the names, which are
    /// not needed any more.)
    private func offerKeys() {
        var count = 0
        for position in selection where !isKnown[position] {
            names[count] = points[position]
            count += 1
        }
        signatures.granted(UnsafeBufferPointer(names.prefix(count)))
    }

    private func settle(as verdict: Verdict, _ verdicts: UnsafeMutableBufferPointer<Verdict>) {
        for index in 0..<survivorCount {
            verdicts[survivors[index]] = verdict
        }
    }
}
