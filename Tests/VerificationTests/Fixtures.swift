import Core
import Foundation
import Hashing
import Identity
import RootSets
import Signatures
import TestSupport
import Testing
import Verification

/// A clock that stands still until the test advances it.
struct ManualClock: Sendable {
    let now = Shared<UInt64>(1_000_000)
    var clock: MonotonicClock { MonotonicClock { [now] in now.value } }

    func advance(_ milliseconds: UInt64) {
        now.with { $0 += milliseconds }
    }
}

/// Proofs and the memory that they are borrowed from.
///
/// Sendable without the compiler's proof: nothing changes after `init`.
final class PackedProofs: @unchecked Sendable {
    private let memory: ScratchBuffer<UInt8>
    let proofs: [BorrowedProof]

    init(_ entries: [(collaboration: String, proof: SignedIdentityProof)]) {
        var bytes: [UInt8] = []
        var names: [String: Range<Int>] = [:]
        func keep(_ new: [UInt8]) -> Range<Int> {
            bytes += new
            return bytes.count - new.count..<bytes.count
        }
        var places: [(name: Range<Int>, key: Range<Int>, path: Range<Int>, signature: Range<Int>, data: Range<Int>)] =
            []
        for (collaboration, proof) in entries {
            let name = names[collaboration] ?? keep(Array(collaboration.utf8))
            names[collaboration] = name
            let path = keep(proof.inclusionHashes.flatMap(\.bytes))
            places.append((name, keep(proof.publicKey), path, keep(proof.signature), keep(proof.data)))
        }
        memory = ScratchBuffer(uninitializedCount: bytes.count)
        let copied = memory.bytes
        copied.copyBytes(from: bytes)
        func lend(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: copied[range]) }
        let start = UnsafeRawPointer(memory.baseAddress)
        proofs = zip(entries, places).map { entry, place in
            BorrowedProof(
                collaboration: lend(place.name), publicKey: lend(place.key),
                publicKeyIndex: entry.proof.publicKeyIndex, inclusionHashes: start + place.path.lowerBound,
                inclusionHashCount: entry.proof.inclusionHashes.count,
                signatureFormat: entry.proof.signatureFormat.rawValue, signature: lend(place.signature),
                data: lend(place.data))
        }
    }
}

/// Verification with one collaboration of each policy and some people in both.
final class Fixture: Sendable {
    static let challenged = "with challenges"
    static let nonced = "with nonces"
    static let windowSeconds: UInt32 = 60

    let scratch = ScratchDirectory()
    let time = ManualClock()
    let resources: VerificationResources
    /// By collaboration; each person has three devices and is known.
    let people: [String: [SimulatedIdentity]]
    let stranger: PrivateKey
    /// Of the challenges.
    let keys: RotatingKeys

    init(
        people count: Int = 3, validMilliseconds: UInt64 = 1000, replayBytesMax: Int = 64 << 20,
        noncesMax: Int = 1 << 20, signatures: SignatureEngine = SignatureEngine(SignatureEngine.Configuration()),
        shared: (any SharedLog)? = nil,
        _ surroundings: StorageSurroundings = StorageSurroundings()
    ) throws {
        let random = RandomSource.seeded(runSeed)
        let sets = try RootSets(
            RootSets.Configuration(directory: scratch.path + "/data", reserveBytes: 1 << 20),
            surroundings: surroundings, shared: shared)
        // A storage that shares a log changes nothing before it has read it.
        #expect(shared == nil || becomesTrue { sets.isFresh })
        var people: [String: [SimulatedIdentity]] = [:]
        for (text, policy) in [
            (Fixture.challenged, ProofPolicy.challenge),
            (Fixture.nonced, .deviceNonce(windowSeconds: Fixture.windowSeconds)),
        ] {
            let name = try #require(CollaborationIdentifier(text))
            let known = try (0..<count).map { number in
                try Person(deviceCount: 3, random: random).identity(
                    in: name, encoding: KeyEncoding.allCases[number % 3], paddedTo: [4, 8, 16, 3][number % 4],
                    random: random)
            }
            people[text] = known
            try sets.apply(Mutation(.createCollaboration(name, policy)))
            try sets.apply(Mutation(.addRoots(name, known.map(\.rootHash))))
        }
        self.people = people
        stranger = try PrivateKey(random: random)
        let keys = freshKeys()
        self.keys = keys
        resources = VerificationResources(
            rootSets: sets,
            challenges: ChallengeBook(
                keys: keys, validMilliseconds: validMilliseconds, replayBytesMax: replayBytesMax,
                clock: time.clock,
                random: random),
            nonces: NonceMemory(entriesMax: noncesMax, clock: time.clock),
            signatures: signatures)
    }

    func challenge() -> [UInt8] { resources.challenges.challenge() }

    func proof(
        in collaboration: String = Fixture.challenged, person: Int = 0, device: Int = 0, signing data: [UInt8]? = nil,
        format: SignatureFormat = .der
    ) throws -> SignedIdentityProof {
        let identity = try #require(people[collaboration]?[person])
        return try identity.proof(ofDevice: device, signing: data ?? challenge(), format: format)
    }

    func root(in collaboration: String = Fixture.challenged, person: Int = 0) throws -> Digest {
        try #require(people[collaboration]?[person]).rootHash
    }

    /// The verdicts and root hashes of a batch verifier, as many passes as it takes.
    func judge(
        _ entries: [(collaboration: String, proof: SignedIdentityProof)], isSigned: Bool = true
    ) throws -> [(verdict: Verdict, root: Digest)] {
        let packed = PackedProofs(entries)
        let verifier = try BatchVerifier(resources)
        var answers: [(verdict: Verdict, root: Digest)] = []
        for start in stride(from: 0, to: entries.count, by: BatchVerifier.capacity) {
            let part = Array(packed.proofs[start..<min(start + BatchVerifier.capacity, entries.count)])
            var verdicts = [Verdict](repeating: .malformed, count: part.count)
            var roots = [Digest](repeating: .zero, count: part.count)
            try part.withUnsafeBufferPointer { part in
                try verdicts.withUnsafeMutableBufferPointer { verdicts in
                    try roots.withUnsafeMutableBufferPointer { roots in
                        if isSigned {
                            try verifier.verify(part, verdicts: verdicts, roots: roots)
                        } else {
                            try verifier.verifyInclusion(part, verdicts: verdicts, roots: roots)
                        }
                    }
                }
            }
            answers += zip(verdicts, roots).map { ($0, $1) }
        }
        withExtendedLifetime(packed) {}
        return answers
    }

    func verdict(_ proof: SignedIdentityProof, in collaboration: String = Fixture.challenged) throws -> Verdict {
        try #require(try judge([(collaboration, proof)]).first).verdict
    }
}

/// Holders that have no counter in common unless a number is the same. Both are from 0 to 1,023.
func holder(_ collaboration: UInt32, _ participant: UInt32) -> MemoryHolder {
    // The number is what each of the two counters is chosen by.
    MemoryHolder(collaboration: collaboration << 10 | collaboration, participant: participant << 10 | participant)
}

/// Keys that no other book has.
func freshKeys() -> RotatingKeys {
    RotatingKeys(KeyPair(current: MessageAuthenticator(key: RandomSource.system.bytes(32))))
}

extension ChallengeBook {
    /// Judges challenges in a batch, in their order.
    func standings(of challenges: [[UInt8]], with checker: TagChecker) -> [Standing] {
        let packed = challenges.flatMap { $0 }
        var standings = [Standing](repeating: .forged, count: challenges.count)
        packed.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            judge(challenges.count, with: checker, now: now) {
                start + $0 * ChallengeBook.challengeBytes
            } report: {
                standings[$0] = $1
            }
        }
        return standings
    }

    /// New challenges, one after the other.
    func challenges(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count * ChallengeBook.challengeBytes)
        let maker = makeTagMaker()
        bytes.withUnsafeMutableBytes { bytes in
            if let start = bytes.baseAddress { issue(count, to: start, with: maker) }
        }
        return bytes
    }

    /// One challenge.
    func challenge() -> [UInt8] { challenges(1) }

    /// Spends it for somebody.
    func spend(_ token: Token) -> SpentChallenges.Spending { spend(token, by: holder(1, 1)) }

    func standing(ofBytes bytes: [UInt8]) -> Standing {
        bytes.withUnsafeBytes { standing(of: $0) }
    }

    /// The token of a challenge that must be usable.
    func token(of bytes: [UInt8]) throws -> Token {
        guard case .usable(let token) = standing(ofBytes: bytes) else {
            throw ServiceError(.internalFault, "the challenge is not usable")
        }
        return token
    }
}

extension VerificationRequest {
    /// A request whose proofs are read one by one.
    convenience init(
        count: Int, isSigned: Bool, wantsRoots: Bool, proof: @escaping @Sendable (Int) -> BorrowedProof,
        completion: @escaping @Sendable (VerificationRequest, ServiceError?) -> Void
    ) {
        self.init(count: count, isSigned: isSigned, wantsRoots: wantsRoots) { positions, proofs in
            for (place, position) in positions.enumerated() {
                proofs.initializeElement(at: place, to: proof(position))
            }
        } completion: {
            completion($0, $1)
        }
    }
}
