import Core
import Foundation
import Identity
import Merkle
import RootSets
import Signatures
import TestSupport
import Testing
import Verification

@Suite("Batches of proofs")
struct BatchVerifierTests {
    @Test("A genuine proof is granted once, whatever the encodings", arguments: SignatureFormat.allCases)
    func granted(format: SignatureFormat) throws {
        let fixture = try Fixture()
        for person in 0..<3 {
            for device in 0..<3 {
                let proof = try fixture.proof(person: person, device: device, format: format)
                let answer = try #require(try fixture.judge([(Fixture.challenged, proof)]).first)
                #expect(answer.verdict == .granted)
                #expect(answer.root == (try fixture.root(person: person)))
                #expect(try fixture.verdict(proof) == .challengeReplayed)
            }
        }
    }

    @Test(
        "Every forgery gets its verdict, spends nothing, and the genuine proof is granted after it",
        arguments: Forgery.allCases)
    func forgery(_ forgery: Forgery) throws {
        let fixture = try Fixture()
        let genuine = try fixture.proof()
        let spoiled = try forgery.spoil(genuine, stranger: fixture.stranger)
        for _ in 0..<3 { #expect(try fixture.verdict(spoiled) == forgery.verdict) }
        #expect(try fixture.verdict(genuine) == .granted)
    }

    @Test("Of several faults the first in the order of the protocol decides")
    func order() throws {
        let fixture = try Fixture()
        let genuine = try fixture.proof()
        let order: [(verdict: Verdict, forgery: Forgery?)] = [
            (.malformed, .tooMuchData), (.badKey, .truncatedKey), (.badIndex, .indexBeyondTree),
            (.badSignatureEncoding, .trailingByteInSignature), (.unknownCollaboration, nil),
            (.challengeForged, .changedChallenge), (.notParticipant, .changedSibling),
            (.badSignature, .changedSignature),
        ]
        for faults in 1..<1 << order.count {
            var proof = genuine
            var collaboration = Fixture.challenged
            // Backwards, so that the last byte of the signature is still its own when it is changed.
            for (place, fault) in order.enumerated().reversed() where faults >> place & 1 == 1 {
                if let forgery = fault.forgery {
                    proof = try forgery.spoil(proof, stranger: fixture.stranger)
                } else {
                    collaboration = "nowhere"
                }
            }
            let first = order[faults.trailingZeroBitCount].verdict
            #expect(try fixture.verdict(proof, in: collaboration) == first, "faults \(faults)")
        }
        #expect(try fixture.verdict(genuine) == .granted)
    }

    @Test("An expired challenge is refused before membership is checked")
    func expired() throws {
        let fixture = try Fixture(validMilliseconds: 1000)
        let genuine = try fixture.proof()
        let inTime = try fixture.proof()
        fixture.time.advance(1000)
        #expect(try fixture.verdict(inTime) == .granted)
        fixture.time.advance(1)
        #expect(try fixture.verdict(genuine) == .challengeExpired)
        #expect(
            try fixture.verdict(Forgery.changedSibling.spoil(genuine, stranger: fixture.stranger)) == .challengeExpired)
    }

    @Test("An unknown signature format is malformed even when all else is wrong too")
    func unknownFormat() throws {
        let fixture = try Fixture()
        var proof = try fixture.proof()
        proof.publicKey = []
        let packed = PackedProofs([(Fixture.challenged, proof)])
        for format: UInt8 in [0, 3, 255] {
            var borrowed = packed.proofs
            borrowed[0].signatureFormat = format
            var verdicts = [Verdict.granted]
            var roots = [Digest.zero]
            let verifier = try BatchVerifier(fixture.resources)
            try borrowed.withUnsafeBufferPointer { proofs in
                try verdicts.withUnsafeMutableBufferPointer { verdicts in
                    try roots.withUnsafeMutableBufferPointer { roots in
                        try verifier.verify(proofs, verdicts: verdicts, roots: roots)
                    }
                }
            }
            #expect(verdicts == [.malformed])
        }
        withExtendedLifetime(packed) {}
    }

    @Test("A listed key that is no point of the curve is a bad key")
    func offCurve() throws {
        let fixture = try Fixture()
        let key = [0x04] + [UInt8](repeating: 1, count: 64)
        let tree = try #require(MerkleTree(keys: [key], paddedTo: 4))
        let path = try #require(tree.proof(at: 0))
        let name = try #require(CollaborationIdentifier(Fixture.challenged))
        try fixture.resources.rootSets.apply(Mutation(.addRoots(name, [tree.root])))
        var proof = try fixture.proof()
        proof.publicKey = key
        proof.publicKeyIndex = 0
        proof.inclusionHashes = path.siblings
        #expect(try fixture.verdict(proof) == .badKey)
    }

    @Test("Of many copies in one batch exactly one is granted", arguments: [Fixture.challenged, Fixture.nonced])
    func duplicates(collaboration: String) throws {
        let fixture = try Fixture()
        let nonce = SystemRandomNumberGenerator.bytes(16)
        let data = collaboration == Fixture.nonced ? nonce : nil
        let proof = try fixture.proof(in: collaboration, signing: data)
        let answers = try fixture.judge((0..<200).map { _ in (collaboration, proof) })
        let replayed: Verdict = collaboration == Fixture.nonced ? .nonceReplayed : .challengeReplayed
        #expect(answers.count { $0.verdict == .granted } == 1)
        #expect(answers.count { $0.verdict == replayed } == 199)
    }

    @Test("Of one proof on eight threads exactly one is granted", arguments: [Fixture.challenged, Fixture.nonced])
    func threads(collaboration: String) throws {
        let fixture = try Fixture()
        let proofs = try (0..<20).map { _ in
            let data = collaboration == Fixture.nonced ? SystemRandomNumberGenerator.bytes(16) : nil
            return try fixture.proof(in: collaboration, signing: data)
        }
        let granted = Shared([Int](repeating: 0, count: proofs.count))
        onThreads(8) { _ in
            for (index, proof) in proofs.enumerated() where (try? fixture.verdict(proof, in: collaboration)) == .granted
            {
                granted.with { $0[index] += 1 }
            }
        }
        #expect(granted.value == [Int](repeating: 1, count: proofs.count))
    }

    @Test("A nonce of 16 bytes is accepted, one of 15 is not")
    func nonceLength() throws {
        let fixture = try Fixture()
        for (count, verdict) in [
            (16, Verdict.granted), (15, .badNonce), (0, .badNonce), (4096, .granted), (4097, .malformed),
        ] {
            let proof = try fixture.proof(in: Fixture.nonced, signing: [UInt8](repeating: 3, count: count))
            #expect(try fixture.verdict(proof, in: Fixture.nonced) == verdict, "\(count) bytes")
        }
    }

    @Test("A nonce is accepted once for each key within the window, and failed attempts don't spend it")
    func nonceReplay() throws {
        let fixture = try Fixture()
        let nonce = [UInt8](repeating: 9, count: 20)
        let proof = try fixture.proof(in: Fixture.nonced, signing: nonce)
        for forgery in [Forgery.changedSignature, .otherSigner, .changedSibling] {
            let spoiled = try forgery.spoil(proof, stranger: fixture.stranger)
            #expect(try fixture.verdict(spoiled, in: Fixture.nonced) == forgery.verdict)
        }
        #expect(try fixture.verdict(proof, in: Fixture.nonced) == .granted)
        #expect(try fixture.verdict(proof, in: Fixture.nonced) == .nonceReplayed)
        let otherKey = try fixture.proof(in: Fixture.nonced, device: 1, signing: nonce)
        #expect(try fixture.verdict(otherKey, in: Fixture.nonced) == .granted)
        fixture.time.advance(UInt64(Fixture.windowSeconds) * 1000 - 1)
        #expect(try fixture.verdict(proof, in: Fixture.nonced) == .nonceReplayed)
        fixture.time.advance(1)
        #expect(try fixture.verdict(proof, in: Fixture.nonced) == .granted)
    }

    @Test("A genuine proof is refused when the memory of nonces is full")
    func memoryFull() throws {
        let fixture = try Fixture(noncesMax: 4)
        // One for each person, and half of the memory for one collaboration.
        for (index, verdict) in [Verdict.granted, .granted, .replayMemoryFull].enumerated() {
            let proof = try fixture.proof(
                in: Fixture.nonced, person: index, signing: [UInt8](repeating: UInt8(index), count: 16))
            #expect(try fixture.verdict(proof, in: Fixture.nonced) == verdict)
        }
        #expect(try fixture.verdict(fixture.proof()) == .granted)
    }

    @Test("A person who has his share of the memory of nonces is refused, with any of his keys, and others are not")
    func shareOfNonces() throws {
        let fixture = try Fixture(noncesMax: 16)
        func verdict(_ number: UInt8, person: Int, device: Int) throws -> Verdict {
            let nonce = [UInt8](repeating: number, count: 16)
            let proof = try fixture.proof(in: Fixture.nonced, person: person, device: device, signing: nonce)
            return try fixture.verdict(proof, in: Fixture.nonced)
        }
        for number in 0..<4 as Range<UInt8> {
            #expect(try verdict(number, person: 0, device: Int(number) % 3) == .granted)
        }
        for device in 0..<3 { #expect(try verdict(9, person: 0, device: device) == .replayMemoryFull) }
        #expect(try verdict(0, person: 0, device: 0) == .nonceReplayed)
        #expect(try verdict(9, person: 1, device: 0) == .granted)
    }

    @Test("A genuine proof is refused when the memory of challenges is full, and granted when they have expired")
    func challengesFull() throws {
        let fixture = try Fixture(replayBytesMax: 1)
        let (first, second) = (try fixture.proof(), try fixture.proof())
        // There is room for one group of 64 challenges.
        #expect(try fixture.verdict(first) == .granted)
        #expect(try fixture.verdict(second) == .granted)
        _ = fixture.resources.challenges.challenges(64)
        #expect(try fixture.verdict(fixture.proof(person: 1)) == .replayMemoryFull)
        fixture.time.advance(2000)
        #expect(try fixture.verdict(fixture.proof()) == .granted)
    }

    @Test("One batch may mix collaborations, policies and faults")
    func mixed() throws {
        let fixture = try Fixture()
        var entries: [(collaboration: String, proof: SignedIdentityProof)] = []
        var expected: [Verdict] = []
        for index in 0..<120 {
            switch index % 6 {
            case 0:
                entries.append((Fixture.challenged, try fixture.proof(person: index % 3)))
                expected.append(.granted)
            case 1:
                let nonce = Array("a nonce for number \(index)".utf8)
                entries.append((Fixture.nonced, try fixture.proof(in: Fixture.nonced, signing: nonce)))
                expected.append(.granted)
            case 2:
                entries.append(("nowhere", try fixture.proof()))
                expected.append(.unknownCollaboration)
            case 3:
                // Another collaboration's person.
                entries.append(
                    (Fixture.challenged, try fixture.proof(in: Fixture.nonced, signing: fixture.challenge())))
                expected.append(.notParticipant)
            case 4:
                let forgery = Forgery.allCases[index / 6 % Forgery.allCases.count]
                entries.append((Fixture.challenged, try forgery.spoil(fixture.proof(), stranger: fixture.stranger)))
                expected.append(forgery.verdict)
            default:
                entries.append(("", try fixture.proof()))
                expected.append(.unknownCollaboration)
            }
        }
        let answers = try fixture.judge(entries)
        #expect(answers.map(\.verdict) == expected)
        for (index, answer) in answers.enumerated() where answer.verdict == .granted {
            let root = try fixture.root(in: entries[index].collaboration, person: index % 6 == 0 ? index % 3 : 0)
            #expect(answer.root == root)
        }
    }

    @Test("Inclusion-only checks the path and the set, neither signatures nor freshness")
    func inclusionOnly() throws {
        let fixture = try Fixture()
        let genuine = try fixture.proof(person: 1)
        var entries: [(collaboration: String, proof: SignedIdentityProof)] = [
            (Fixture.challenged, genuine), (Fixture.challenged, genuine), ("nowhere", genuine),
            (Fixture.nonced, genuine),
        ]
        var expected: [Verdict] = [.included, .included, .unknownCollaboration, .notParticipant]
        for forgery in Forgery.allCases {
            entries.append((Fixture.challenged, try forgery.spoil(genuine, stranger: fixture.stranger)))
            switch forgery.verdict {
            case .badSignatureEncoding, .challengeForged, .badSignature: expected.append(.included)
            default: expected.append(forgery.verdict)
            }
        }
        let answers = try fixture.judge(entries, isSigned: false)
        #expect(answers.map(\.verdict) == expected)
        for answer in answers where answer.verdict == .included {
            #expect(answer.root == (try fixture.root(person: 1)))
        }
        #expect(try fixture.verdict(genuine) == .granted)
    }

    @Test("The root hash of a proof that was refused before it was computed is zero")
    func zeroRoots() throws {
        let fixture = try Fixture()
        for forgery in Forgery.allCases {
            let spoiled = try forgery.spoil(fixture.proof(), stranger: fixture.stranger)
            let answer = try #require(try fixture.judge([(Fixture.challenged, spoiled)]).first)
            let isComputed = answer.verdict == .notParticipant || answer.verdict == .badSignature
            #expect((answer.root != .zero) == isComputed, "\(forgery.rawValue)")
        }
    }

    @Test("A person who was removed is no participant, and one who was added is")
    func membershipChanges() throws {
        let fixture = try Fixture()
        let name = try #require(CollaborationIdentifier(Fixture.challenged))
        try fixture.resources.rootSets.apply(Mutation(.removeRoots(name, [try fixture.root()])))
        let proof = try fixture.proof()
        #expect(try fixture.verdict(proof) == .notParticipant)
        try fixture.resources.rootSets.apply(Mutation(.addRoots(name, [try fixture.root()])))
        #expect(try fixture.verdict(proof) == .granted)
    }
}

extension SystemRandomNumberGenerator {
    static func bytes(_ count: Int) -> [UInt8] { RandomSource.system.bytes(count) }
}

@Suite("Proofs against an oracle")
struct ProofDifferentialTests {
    private struct Case {
        let collaboration: String
        let proof: SignedIdentityProof
        let corruption: String
    }

    private func flip(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        guard !bytes.isEmpty else { return }
        let at = Int.random(in: bytes.indices, using: &random)
        bytes[at] ^= UInt8.random(in: 1...255, using: &random)
    }

    private func randomCase(_ fixture: Fixture, _ random: inout SeededGenerator) throws -> Case {
        let isNonced = Bool.random(using: &random)
        let collaboration = isNonced ? Fixture.nonced : Fixture.challenged
        var proof = try fixture.proof(
            in: collaboration, person: Int.random(in: 0..<12, using: &random),
            device: Int.random(in: 0..<3, using: &random),
            signing: isNonced ? random.bytes(Int.random(in: 14...40, using: &random)) : nil,
            format: Bool.random(using: &random) ? .der : .raw)
        guard Bool.random(using: &random) else {
            return Case(collaboration: collaboration, proof: proof, corruption: "none")
        }
        let field = ["key", "index", "sibling", "signature", "data"][Int.random(in: 0..<5, using: &random)]
        switch field {
        case "key": flip(&proof.publicKey, &random)
        case "index":
            let shift = UInt64(Int.random(in: 0..<8, using: &random) * 8)
            proof.publicKeyIndex ^=
                UInt64(Bool.random(using: &random) ? 1 << Int.random(in: 0..<8, using: &random) : 255) << shift
        case "sibling":
            let at = Int.random(in: proof.inclusionHashes.indices, using: &random)
            var bytes = proof.inclusionHashes[at].bytes
            flip(&bytes, &random)
            proof.inclusionHashes[at] = try #require(Digest(bytes))
        case "signature": flip(&proof.signature, &random)
        default: flip(&proof.data, &random)
        }
        return Case(collaboration: collaboration, proof: proof, corruption: field)
    }

    private func expected(_ one: Case, challenges: Set<[UInt8]>, roots: [String: Set<[UInt8]>]) -> Verdict {
        let proof = one.proof
        guard let point = ProofOracle.point(in: proof.publicKey) else { return .badKey }
        guard proof.publicKeyIndex >> UInt64(proof.inclusionHashes.count) == 0 else { return .badIndex }
        guard let signature = ProofOracle.derSignature(proof.signature, proof.signatureFormat) else {
            return .badSignatureEncoding
        }
        if one.collaboration == Fixture.challenged {
            guard challenges.contains(proof.data) else { return .challengeForged }
        } else {
            guard proof.data.count >= 16 else { return .badNonce }
        }
        let root = ProofOracle.root(
            key: proof.publicKey, index: proof.publicKeyIndex, siblings: proof.inclusionHashes[...])
        guard roots[one.collaboration]?.contains(root) == true else { return .notParticipant }
        switch ProofOracle.verifies(signature, over: proof.data, point: point) {
        case true: return .granted
        case false: return .badSignature
        case nil: return .badKey
        }
    }

    @Test("Thousands of random proofs, half of them with one wrong byte, get the oracle's verdicts")
    func differential() throws {
        var random = SeededGenerator(seed: runSeed)
        let fixture = try Fixture(people: 12)
        var cases: [Case] = []
        var challenges: Set<[UInt8]> = []
        for _ in 0..<3000 {
            let one = try randomCase(fixture, &random)
            if one.corruption != "data" { challenges.insert(one.proof.data) }
            cases.append(one)
        }
        let roots = fixture.people.mapValues { Set($0.map { $0.rootHash.bytes }) }
        let answers = try fixture.judge(cases.map { ($0.collaboration, $0.proof) })
        var seen: [Verdict: Int] = [:]
        for (step, (one, answer)) in zip(cases, answers).enumerated() {
            let verdict = expected(one, challenges: challenges, roots: roots)
            #expect(answer.verdict == verdict, "seed \(runSeed), step \(step), corrupted: \(one.corruption)")
            seen[verdict, default: 0] += 1
        }
        for verdict in [
            Verdict.granted, .badKey, .badIndex, .badSignatureEncoding, .challengeForged, .badNonce, .notParticipant,
            .badSignature,
        ] {
            #expect(seen[verdict, default: 0] > 5, "seed \(runSeed): hardly any \(verdict)")
        }
    }
}

@Suite("Single proofs without a service")
struct StandaloneVerifierTests {
    @Test("Forgeries get their verdicts where no service is needed for them")
    func verdicts() throws {
        let fixture = try Fixture()
        let genuine = try fixture.proof()
        let root = try fixture.root()
        let listed = try StandaloneVerifier(roots: [root])
        let unlisted = try StandaloneVerifier(roots: nil)
        let empty = try StandaloneVerifier(roots: [])
        #expect(try listed.verify(genuine) == (.granted, root))
        #expect(try listed.verify(genuine) == (.granted, root))
        #expect(try unlisted.verify(genuine) == (.unlisted, root))
        #expect(try empty.verify(genuine) == (.notParticipant, root))
        for forgery in Forgery.allCases {
            let spoiled = try forgery.spoil(genuine, stranger: fixture.stranger)
            // A changed challenge is data that was not signed. Without a list of roots nobody is a stranger.
            let expected: Verdict = forgery.verdict == .challengeForged ? .badSignature : forgery.verdict
            #expect(try listed.verify(spoiled).verdict == expected, "\(forgery.rawValue)")
            let withoutList: Verdict =
                switch forgery {
                case .changedSibling, .wrongIndex: .unlisted
                case .otherKey: .badSignature
                default: expected
                }
            #expect(try unlisted.verify(spoiled).verdict == withoutList, "\(forgery.rawValue)")
        }
    }

    @Test("Without siblings the leaf is the root, and only index 0 is in the tree")
    func leafOnly() throws {
        let fixture = try Fixture()
        var proof = try fixture.proof()
        proof.inclusionHashes = []
        proof.publicKeyIndex = 0
        let root = try #require(Digest(ProofOracle.hash(proof.publicKey)))
        #expect(try StandaloneVerifier(roots: [root]).verify(proof) == (.granted, root))
        proof.publicKeyIndex = 1
        #expect(try StandaloneVerifier(roots: [root]).verify(proof) == (.badIndex, nil))
    }
}
