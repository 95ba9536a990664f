package import Core
import Hashing
import Merkle
import RootSets
import Signatures

/// Turns a batch of proofs into verdicts. Each stage judges all proofs that no earlier stage has refused. Cheap stages
/// come first:
///
///     shape -> collaboration and its policy -> challenge or nonce -> root hash
///           -> membership -> signature -> spending the challenge or nonce
///
/// It allocates its memory once, and nothing for a proof. It serves one thread at a time. A whole batch is verified
/// against one snapshot of the root sets.
package final class BatchVerifier {
    /// The challenge or nonce in a proof's signed data. It is spent when the proof is granted.
    private enum Freshness: BitwiseCopyable {
        case none
        case challenge(ChallengeBook.Token)
        case nonce(NonceMemory.Fingerprint, windowSeconds: UInt32)
    }

    private static var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
    private static var noCheck: SignatureCheck { SignatureCheck(point: noBytes, scalars: ScalarPair(), digest: .zero) }

    private let resources: VerificationResources
    private let signatures: SignatureVerifier
    /// The survivors: positions in the batch of the proofs that no stage has refused yet, ascending.
    private let survivors = ScratchBuffer<Int>(repeating: 0, count: BatchVerifier.capacity)
    private var survivorCount = 0
    /// Whether a batch is being verified.
    private var isBusy = false
    private let lookup = CollaborationLookup()
    private let hasher = RootHasher(capacity: BatchVerifier.capacity)
    /// SHA-256 of the signed data of each survivor.
    private let dataDigests = ScratchBuffer<Digest>(repeating: .zero, count: BatchVerifier.capacity)
    /// The collaboration's name for each run of survivors with the same name, and the collaboration that was found.
    private let names = ScratchBuffer<UnsafeRawBufferPointer>(
        repeating: BatchVerifier.noBytes, count: BatchVerifier.capacity)
    private let found = ScratchBuffer<CollaborationView?>(repeating: nil, count: BatchVerifier.capacity)
    private let viewMemory = ScratchBuffer<CollaborationView?>(repeating: nil, count: BatchVerifier.capacity)
    /// Views are read through the pointer, because the compiler does not inline the buffer's accessor before a possible
    /// throw.
    private var views: UnsafeMutablePointer<CollaborationView?> { viewMemory.baseAddress }
    private let freshness = ScratchBuffer<Freshness>(repeating: .none, count: BatchVerifier.capacity)
    private let challengeChecker: TagChecker
    private let candidates: ScratchBuffer<(position: Int, data: UnsafeRawPointer)>
    private let standings = ScratchBuffer<ChallengeBook.Standing>(repeating: .forged, count: BatchVerifier.capacity)
    private let points = ScratchBuffer<UnsafeRawBufferPointer>(
        repeating: BatchVerifier.noBytes, count: BatchVerifier.capacity)
    private let scalars = ScratchBuffer<ScalarPair>(repeating: ScalarPair(), count: BatchVerifier.capacity)
    private let checks = ScratchBuffer<SignatureCheck>(repeating: BatchVerifier.noCheck, count: BatchVerifier.capacity)
    private let outcomes = ScratchBuffer<SignatureOutcome>(repeating: .invalid, count: BatchVerifier.capacity)
    /// Whether the key of each survivor has a table.
    private let isKnown = ScratchBuffer<Bool>(repeating: false, count: BatchVerifier.capacity)

    private var stopwatch: SlowPassLog.Stopwatch

    /// The most proofs in a batch.
    package static let capacity = Limits.proofsPerPassMax

    /// Throws `internalFault` when libcrypto can't allocate.
    package convenience init(_ resources: VerificationResources) throws(ServiceError) {
        try self.init(resources, nil)
    }

    /// `meter`: counts how long the passes take.
    init(_ resources: VerificationResources, _ meter: PassMeter?) throws(ServiceError) {
        self.resources = resources
        signatures = try SignatureVerifier(resources.signatures)
        challengeChecker = resources.challenges.makeChecker()
        candidates = ScratchBuffer(uninitializedCount: TagChecker.capacity)
        stopwatch = SlowPassLog.Stopwatch(resources.slowPasses, meter)
    }

    /// Writes the verdict of every signed proof. Also writes its root hash, or zero if none was computed.
    ///
    /// `proofs`: at most `capacity`. `verdicts` and `roots`: as long as `proofs`. Throws when the service can't answer
    /// (storage, memory, `stale`). Then no verdict is valid.
    package func verify(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, verdicts: UnsafeMutableBufferPointer<Verdict>,
        roots: UnsafeMutableBufferPointer<Digest>
    ) throws(ServiceError) {
        begin(proofs, verdicts, roots)
        defer { isBusy = false }
        filter(verdicts) { judgeShape(of: proofs[$1], at: $1) }
        stopwatch.lap(.shape)
        let moment = resources.rootSets.moment
        try resources.rootSets.read { snapshot throws(ServiceError) in
            try findCollaborations(of: proofs, in: snapshot, verdicts)
            stopwatch.lap(.collaboration)
            judgeFreshness(of: proofs, verdicts)
            stopwatch.lap(.challenge)
            computeRoots(of: proofs, into: roots)
            stopwatch.lap(.root)
            try filterMembers(in: snapshot, roots, verdicts)
        }
        stopwatch.lap(.membership)
        try filterSigned(proofs, verdicts)
        stopwatch.lap(.signature)
        // What is not answered should spend nothing.
        try resources.rootSets.checkFresh(moment)
        resources.challenges.withMemory { memory in
            filter(verdicts) {
                spend($1, MemoryHolder(collaboration: proofs[$1].collaboration, root: roots[$1]), &memory)
            }
        }
        settle(as: .granted, verdicts)
        offerKeys()
        stopwatch.lap(.spend)
        try resources.rootSets.checkFresh(moment)
        stopwatch.finish(proofs.count)
    }

    /// Writes the verdict of every proof from its root hash and membership alone. Signatures are not verified.
    ///
    /// The contract is that of `verify`. A proof that passes has the verdict `included`.
    package func verifyInclusion(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, verdicts: UnsafeMutableBufferPointer<Verdict>,
        roots: UnsafeMutableBufferPointer<Digest>
    ) throws(ServiceError) {
        begin(proofs, verdicts, roots)
        defer { isBusy = false }
        filter(verdicts) { judgePath(of: proofs[$1], at: $1) }
        stopwatch.lap(.shape)
        let moment = resources.rootSets.moment
        try resources.rootSets.read { snapshot throws(ServiceError) in
            try findCollaborations(of: proofs, in: snapshot, verdicts)
            stopwatch.lap(.collaboration)
            computeRoots(of: proofs, into: roots)
            stopwatch.lap(.root)
            try filterMembers(in: snapshot, roots, verdicts)
        }
        stopwatch.lap(.membership)
        settle(as: .included, verdicts)
        try resources.rootSets.checkFresh(moment)
        stopwatch.finish(proofs.count)
    }

    // MARK: Stages

    private func begin(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>,
        _ roots: UnsafeMutableBufferPointer<Digest>
    ) {
        precondition(!isBusy, "a verifier got a batch while it verified another")
        precondition(proofs.count <= BatchVerifier.capacity, "a batch has more proofs than its capacity")
        precondition(
            verdicts.count == proofs.count && roots.count == proofs.count,
            "there is not one verdict and one root for each proof")
        isBusy = true
        stopwatch.start()
        survivorCount = proofs.count
        for position in proofs.indices {
            survivors[position] = position
            roots[position] = .zero
        }
    }

    /// Runs a stage: calls `judge` for each survivor and keeps those for which it returns `nil`. Any other result is
    /// the verdict that refuses the proof. `judge` gets the survivor's place among the survivors and its position in
    /// the batch.
    ///
    /// Throws what `judge` throws; the survivors are then unchanged. Inlined, so that no call is made for each proof.
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
        precondition(survivorCount == count && kept <= count, "a stage began before the last one ended")
        survivorCount = kept
    }

    /// Checks lengths, counts, the encoding of the key, and the index.
    private func judgePath(of proof: BorrowedProof, at position: Int) -> Verdict? {
        guard proof.inclusionHashCount <= Limits.inclusionHashesMax,
            proof.data.count <= Limits.signedDataBytesMax
        else { return .malformed }
        guard let point = PublicKeyEncoding.point(in: proof.publicKey) else { return .badKey }
        guard RootHash.isValid(index: proof.publicKeyIndex, levels: proof.inclusionHashCount) else { return .badIndex }
        points[position] = point
        return nil
    }

    /// Checks what `judgePath` checks, and the encoding of the signature.
    private func judgeShape(of proof: BorrowedProof, at position: Int) -> Verdict? {
        guard let format = SignatureFormat(rawValue: proof.signatureFormat) else { return .malformed }
        if let refusal = judgePath(of: proof, at: position) { return refusal }
        guard let pair = SignatureEncoding.scalars(in: proof.signature, format: format) else {
            return .badSignatureEncoding
        }
        scalars[position] = pair
        return nil
    }

    /// Looks up the collaborations, once for each run of proofs with the same name.
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
            assert(run < nameCount, "a survivor's name was not looked up")
            views[position] = found[run]
            return views[position] == nil ? .unknownCollaboration : nil
        }
    }

    /// Whether two names are the same bytes at the same address.
    private func isSame(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        a.baseAddress == b.baseAddress && a.count == b.count
    }

    /// Checks the signed data against the collaborations' policies.
    private func judgeFreshness(
        of proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>
    ) {
        let now = resources.challenges.now
        var start = 0
        while start < survivorCount {
            judgeChallenges(of: proofs, start..<min(start + TagChecker.capacity, survivorCount), now)
            start += TagChecker.capacity
        }
        filter(verdicts) { freshnessVerdict(of: proofs[$1], at: $1) }
        // Takes the lock of the memory once for the whole batch.
        resources.challenges.withMemory { memory in
            filter(verdicts) { _, position in
                guard case .challenge(let token) = freshness[position] else { return nil }
                return memory.isSpent(token) ? .challengeReplayed : nil
            }
        }
    }

    /// Judges the challenges of the survivors in `range`. Skips survivors whose collaboration does not demand a
    /// challenge or whose data do not have the size of one.
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
        precondition(count <= candidates.count, "a batch has more challenges than there is room for")
        resources.challenges.judge(count, with: challengeChecker, now: now, candidate: { candidates[$0].data }) {
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
            case .issuedElsewhere: return .challengeElsewhere
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

    /// Spends the challenge or nonce of a proof that passed all other stages. A refused proof spends nothing, so nobody
    /// can use up somebody else's challenge.
    private func spend(
        _ position: Int, _ holder: @autoclosure () -> MemoryHolder, _ memory: inout SpentChallenges
    ) -> Verdict? {
        switch freshness[position] {
        case .none: return .challengeForged
        case .challenge(let token):
            switch memory.spend(token, by: holder()) {
            case .spent: return nil
            case .replayed: return .challengeReplayed
            case .expired: return .challengeExpired
            case .memoryFull: return .replayMemoryFull
            }
        case .nonce(let fingerprint, let windowSeconds):
            switch resources.nonces.spend(fingerprint, windowSeconds: windowSeconds, by: holder()) {
            case .spent: return nil
            case .replayed: return .nonceReplayed
            case .memoryFull: return .replayMemoryFull
            }
        }
    }

    /// Offers the keys of granted proofs without a table to the known keys. (Reuses the memory of the names, which are
    /// no longer needed.)
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
