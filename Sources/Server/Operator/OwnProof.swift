import Core
import Hashing
import Merkle
import Signatures
import Synchronization
import Verification

/// Verifies a proof of the service's own again and again, on the workers: with a key, a tree and challenges of its own,
/// by the kernels that verify for clients. It reads and changes nothing that is stored.
///
/// A forged copy of each proof has to be refused.
final class OwnProof: Sendable {
    /// What became of the proofs.
    struct State: Equatable, Sendable {
        /// When a proof was last granted, in milliseconds of the service's clock; `nil`: none was.
        var granted: UInt64?
        /// What was wrong with the last one; `nil`: nothing.
        var fault: String?
        /// Proofs that were judged.
        var count: UInt64 = 0
    }

    private let pool: WorkerPool
    private let source = WorkSource()
    private let clock: MonotonicClock
    /// `nil`: libcrypto could not make a key.
    private let bench: Lock<Bench?>
    private let isWaiting = Atomic<Bool>(false)
    private let judged = Lock(State())

    init(_ pool: WorkerPool, _ signatures: SignatureEngine, clock: MonotonicClock, random: RandomSource) {
        self.pool = pool
        self.clock = clock
        bench = Lock(try? Bench(signatures, clock, random))
    }

    var state: State { judged.withLock { $0 } }

    /// Asks the workers to verify one, unless they have not come to the one before. So one waits at most.
    func verifyOne() {
        guard !isWaiting.exchange(true, ordering: .acquiringAndReleasing) else { return }
        pool.submitAlways(from: source) { [self] in
            let fault = bench.withLock { bench -> String? in
                guard let bench else { return "a key of its own could not be made" }
                return bench.fault()
            }
            let now = clock.milliseconds
            judged.withLock { state in
                state.count += 1
                state.fault = fault
                if fault == nil { state.granted = now }
            }
            isWaiting.store(false, ordering: .releasing)
        }
    }
}

/// What makes and verifies the proofs. One thread at a time uses it.
private struct Bench {
    private static let collaboration = Array("rootgate's own proof".utf8)
    private static let validMilliseconds: UInt64 = 10_000
    /// Room for all challenges of ten seconds: each may begin a group of its own.
    private static let replayBytesMax = 1 << 20

    private let key: PrivateKey
    private let tree: MerkleTree
    private let inclusion: InclusionProof
    private let challenges: ChallengeBook
    private let tagMaker: TagMaker
    private let verifier: StandaloneVerifier

    init(_ signatures: SignatureEngine, _ clock: MonotonicClock, _ random: RandomSource) throws(ServiceError) {
        key = try PrivateKey(random: random)
        guard let tree = MerkleTree(keys: [key.uncompressedPoint], random: random), let inclusion = tree.proof(at: 0)
        else { throw ServiceError(.internalFault, "a key has no tree") }
        (self.tree, self.inclusion) = (tree, inclusion)
        challenges = ChallengeBook(
            keys: RotatingKeys(KeyPair(current: MessageAuthenticator(key: random.bytes(32)))),
            validMilliseconds: Bench.validMilliseconds, replayBytesMax: Bench.replayBytesMax, clock: clock,
            random: random)
        tagMaker = challenges.makeTagMaker()
        verifier = try StandaloneVerifier(roots: [tree.root], signatures)
    }

    /// Makes a proof and verifies it. Returns what is wrong; `nil` when it was granted and its copies were refused.
    func fault() -> String? {
        do throws(ServiceError) {
            let proof = try makeProof()
            if let fault = try fault(of: proof) { return fault }
            var forged = proof
            forged.data[0] ^= 1
            let verdict = try verifier.verify(forged).verdict
            return verdict == .badSignature ? nil : "a forged copy of its own proof got \(verdict.name)"
        } catch {
            return "its own proof could not be verified: \(error.reason)"
        }
    }

    private func makeProof() throws(ServiceError) -> SignedIdentityProof {
        var challenge = [UInt8](repeating: 0, count: ChallengeBook.challengeBytes)
        challenge.withUnsafeMutableBytes { bytes in
            if let start = bytes.baseAddress { challenges.issue(1, to: start, with: tagMaker) }
        }
        let scalars = try key.sign(SHA256.hash(challenge))
        return SignedIdentityProof(
            publicKey: key.uncompressedPoint, publicKeyIndex: inclusion.index, inclusionHashes: inclusion.siblings,
            signature: withUnsafeBytes(of: scalars) { Array($0) }, signatureFormat: .raw, data: challenge)
    }

    /// Judges the challenge, the path and the signature, and spends the challenge twice.
    private func fault(of proof: SignedIdentityProof) throws(ServiceError) -> String? {
        guard case .usable(let token) = proof.data.withUnsafeBytes({ challenges.standing(of: $0) }) else {
            return "a challenge of its own was refused"
        }
        let verdict = try verifier.verify(proof).verdict
        guard verdict == .granted else { return "its own proof got \(verdict.name)" }
        let holder = Bench.collaboration.withUnsafeBytes { MemoryHolder(collaboration: $0, root: tree.root) }
        guard case .spent = challenges.spend(token, by: holder) else { return "its own challenge could not be spent" }
        guard case .replayed = challenges.spend(token, by: holder) else { return "its own challenge was spent twice" }
        return nil
    }
}
