import Core
import Foundation
import Hashing
import Identity
import Merkle
import RootSets
import Signatures
import TestSupport
import Testing
import Verification

@Suite("Explanations of proofs")
struct ExplanationTests {
    private typealias Check = Explanation.Check

    /// A check's outcome by name: of a failed one its verdict's.
    private func outcome(_ check: Check, _ explanation: Explanation) throws -> String {
        switch try #require(explanation.finding(check)).outcome {
        case .passed: "passed"
        case .failed(let verdict): verdict.name
        case .unchecked: "unchecked"
        }
    }

    @Test("The checks are those of PROTOCOL.md, in its order")
    func order() throws {
        let text = try String(contentsOfFile: packageFile("PROTOCOL.md"), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "### Verdicts\n").last)
        let list = section.components(separatedBy: "\n").drop { !$0.hasPrefix("1. ") }
            .prefix { $0.first?.isNumber == true }.map { String($0.drop { $0 != " " }.dropFirst()) }
        #expect(list.count == 9)
        let titles = Check.allCases.map(\.title)
        #expect(Array(titles.prefix(7)) == Array(list.prefix(7)))
        #expect(list[7] == "whether \(titles[7]), and \(titles[8])")
        #expect(list[8].hasSuffix("this proof spends it") && titles[9].hasPrefix("spending "))
    }

    @Test("Each level has the nodes, the side and the bit of the reference, in trees of every shape")
    func trees() throws {
        let random = RandomSource.seeded(runSeed)
        var generator = SeededGenerator(seed: runSeed)
        for iteration in 0..<60 {
            // The sizes of the first trees are 1 to 20; others may have an odd count on any level.
            let size = iteration < 20 ? iteration + 1 : Int.random(in: 1...300, using: &generator)
            let context: Comment = "seed \(runSeed), iteration \(iteration), \(size) leaves"
            let encoding = KeyEncoding.allCases[iteration % 3]
            let key = try PrivateKey(random: random)
            let index = Int.random(in: 0..<size, using: &generator)
            let publicKey = encoding.bytes(of: key)
            var leaves = (0..<size).map { _ in generator.bytes(32) }
            leaves[index] = ReferenceSHA256.hash(publicKey)
            let reference = ReferenceMerkle.tree(leaves)
            let data = generator.bytes(48)
            let scalars = try key.sign(SHA256.hash(data))
            let isRaw = Bool.random(using: &generator)
            let proof = SignedIdentityProof(
                publicKey: publicKey, publicKeyIndex: UInt64(index),
                inclusionHashes: try reference.paths[index].map { try #require(Digest($0)) },
                signature: isRaw ? SignatureEncoding.raw(scalars) : SignatureEncoding.der(scalars),
                signatureFormat: isRaw ? .raw : .der, data: data)
            let root = try #require(Digest(reference.root))
            let explanation = try ProofExplainer(roots: [root, generator.digest()]).explain(proof)
            #expect(explanation.leaf.bytes == leaves[index], context)
            #expect(explanation.root == root, context)
            let levels = try #require(explanation.levels, context)
            #expect(levels.map(\.sibling) == proof.inclusionHashes, context)
            for (number, level) in levels.enumerated() {
                #expect(level.isRight == (index / (1 << number) % 2 == 1), context)
                let below = number == 0 ? leaves[index] : levels[number - 1].parent.bytes
                #expect(level.node.bytes == below, context)
                let (left, right) = level.isRight ? (level.sibling.bytes, below) : (below, level.sibling.bytes)
                #expect(level.parent.bytes == ReferenceMerkle.node(left, right), context)
            }
            #expect(explanation.failure == nil, context)
            #expect(explanation.unchecked == [.collaboration, .freshness, .spending], context)
        }
    }

    /// The check that refuses each forgery in a collaboration with challenges.
    private static let deciding: [Forgery: Check] = [
        .tooManySiblings: .lengths, .tooMuchData: .lengths, .hybridKey: .keyEncoding, .truncatedKey: .keyEncoding,
        .indexBeyondTree: .index, .trailingByteInSignature: .signatureEncoding,
        .indefiniteLengthSignature: .signatureEncoding, .foreignChallenge: .freshness,
        .changedChallenge: .freshness, .changedSibling: .membership, .wrongIndex: .membership,
        .otherKey: .membership, .changedSignature: .signature, .otherSigner: .signature, .otherData: .signature,
    ]

    @Test("Every forgery is named by the check that refuses it, here and by a service", arguments: Forgery.allCases)
    func forgeries(_ forgery: Forgery) throws {
        let fixture = try Fixture()
        let genuine = try fixture.proof()
        let explainer = try ProofExplainer(roots: [try fixture.root()])
        #expect(try explainer.explain(genuine).failure == nil)
        let spoiled = try forgery.spoil(genuine, stranger: fixture.stranger)
        let explanation = try explainer.explain(spoiled)
        let check = try #require(Self.deciding[forgery])
        if check == .freshness {
            // No challenge can be judged without its service. The signature is over other data, though.
            #expect(explanation.failure?.check == .signature && explanation.failure?.verdict == .badSignature)
        } else {
            #expect(explanation.failure?.check == check && explanation.failure?.verdict == forgery.verdict)
        }
        let verdict = try fixture.verdict(spoiled)
        #expect(explanation.checks(thatGive: verdict) == [check])
        for other in Check.allCases {
            let places = (Check.allCases.firstIndex(of: other) ?? 0, Check.allCases.firstIndex(of: check) ?? 0)
            let told: Explanation.Told = places.0 < places.1 ? .passed : places.0 == places.1 ? .failed : .silent
            #expect(explanation.told(about: other, by: verdict) == told, "\(other)")
        }
        try compare(explanation, verdict, "\(forgery.rawValue)")
    }

    /// A check whose verdict the service has given, and what the explanation says, must fit each other.
    private func compare(_ explanation: Explanation, _ verdict: Verdict, _ context: Comment) throws {
        for check in Check.allCases {
            let found = try outcome(check, explanation)
            switch explanation.told(about: check, by: verdict) {
            case .passed: #expect(["passed", "unchecked"].contains(found), "\(check): \(context)")
            case .failed: #expect([verdict.name, "unchecked"].contains(found), "\(check): \(context)")
            case .perhapsFailed: #expect(found == "unchecked", "\(check): \(context)")
            case .silent: break
            }
        }
        if verdict == .granted { #expect(explanation.failure == nil, context) }
        guard let failure = explanation.failure else { return }
        // What has failed here refuses there, unless an earlier check does.
        let deciding = try #require(explanation.checks(thatGive: verdict).first, context)
        let places = Check.allCases.enumerated().reduce(into: [:]) { $0[$1.element] = $1.offset }
        #expect((places[deciding] ?? 0) <= (places[failure.check] ?? 0), context)
        if deciding == failure.check { #expect(failure.verdict == verdict, context) }
    }

    @Test("Proofs with up to three faults are explained as the service and the verifier without one judge them")
    func combinations() throws {
        var generator = SeededGenerator(seed: runSeed &+ 1)
        let fixture = try Fixture(people: 4)
        var seen: [Verdict: Int] = [:]
        for iteration in 0..<300 {
            // Their keys are as the forgeries need them.
            let person = Bool.random(using: &generator) ? 0 : 3
            var proof = try fixture.proof(person: person, device: Int.random(in: 0..<3, using: &generator))
            let faults = Int.random(in: 0...3, using: &generator)
            let forgeries = Forgery.allCases.shuffled(using: &generator).prefix(faults)
            let context: Comment = "seed \(runSeed), iteration \(iteration), \(forgeries.map(\.rawValue))"
            for forgery in forgeries {
                if forgery == .tooMuchData, proof.data.count > Limits.signedDataBytesMax { continue }
                proof = try forgery.spoil(proof, stranger: fixture.stranger)
            }
            let roots = Set(try (0..<4).map { try fixture.root(person: $0) })
            let explanation = try ProofExplainer(roots: roots).explain(proof)
            let verdict = try fixture.verdict(proof)
            seen[verdict, default: 0] += 1
            try compare(explanation, verdict, context)
            let alone = try StandaloneVerifier(roots: roots).verify(proof)
            #expect((explanation.failure?.verdict ?? .granted) == alone.verdict, context)
            if let root = alone.root { #expect(explanation.root == root, context) }
        }
        for verdict in [Verdict.granted, .malformed, .badKey, .badIndex, .challengeForged, .notParticipant] {
            #expect(seen[verdict, default: 0] > 0, "seed \(runSeed): never \(verdict)")
        }
    }

    @Test("A key that is no point is named apart from its encoding, here and by a service")
    func offCurve() throws {
        let fixture = try Fixture()
        var proof = try fixture.proof()
        proof.publicKey = [0x04] + [UInt8](repeating: 1, count: 64)
        let root = try #require(
            Digest(
                ProofOracle.root(
                    key: proof.publicKey, index: proof.publicKeyIndex, siblings: proof.inclusionHashes[...])))
        let name = try #require(CollaborationIdentifier(Fixture.challenged))
        try fixture.resources.rootSets.apply(Mutation(.addRoots(name, [root])))
        let explanation = try ProofExplainer(roots: [root]).explain(proof)
        #expect(try outcome(.keyEncoding, explanation) == "passed")
        #expect(explanation.failure?.check == .curve && explanation.failure?.verdict == .badKey)
        #expect(try outcome(.signature, explanation) == "unchecked")
        #expect(try fixture.verdict(proof) == .badKey)
        #expect(explanation.checks(thatGive: .badKey) == [.curve])
        // The point is looked at although there is no signature that could be verified.
        proof.signature = []
        let both = try ProofExplainer(roots: [root]).explain(proof)
        #expect(both.failure?.check == .signatureEncoding)
        #expect(try outcome(.curve, both) == "bad-key")
        proof = try fixture.proof()
        proof.signature = []
        #expect(try outcome(.curve, try ProofExplainer(roots: nil).explain(proof)) == "passed")
    }

    @Test("What was not checked is not said to hold or to fail")
    func silence() throws {
        let fixture = try Fixture()
        let genuine = try fixture.proof()
        let unknown = try ProofExplainer(roots: nil)
        #expect(try unknown.explain(genuine).unchecked == [.collaboration, .freshness, .membership, .spending])
        for forgery in Forgery.allCases {
            let spoiled = try forgery.spoil(genuine, stranger: fixture.stranger)
            let explanation = try unknown.explain(spoiled)
            for check in [Check.collaboration, .freshness, .membership, .spending] {
                #expect(try outcome(check, explanation) == "unchecked", "\(forgery.rawValue): \(check)")
            }
        }
        var beyond = genuine
        beyond.publicKeyIndex = 1 << 40
        let noRoot = try ProofExplainer(roots: [.zero]).explain(beyond, index: "1e400")
        #expect(noRoot.levels == nil && noRoot.root == nil && noRoot.unchecked.contains(.membership))
        #expect(noRoot.finding(.index)?.reason.hasPrefix("1e400 is not a whole number from 0 to ") == true)
        for count in [0, 15, 16, 47, 48, 49] {
            var other = genuine
            other.data = [UInt8](repeating: 0, count: count)
            let finding = try #require(try unknown.explain(other).finding(.freshness))
            #expect(finding.outcome == .unchecked)
            let begins = count == 48 ? "48 bytes, as a challenge has" : "\(count) bytes are "
            #expect(finding.reason.hasPrefix(begins))
            #expect(finding.reason.contains("too few") == (count < 16))
        }
    }

    @Test("A service's verdict tells only what its order of checks implies")
    func told() throws {
        let fixture = try Fixture()
        let explanation = try ProofExplainer(roots: nil).explain(try fixture.proof())
        func told(_ verdict: Verdict) -> String {
            Check.allCases.map { String(explanation.told(about: $0, by: verdict).rawValue.first ?? " ") }.joined()
        }
        // p: passed or perhaps failed, f: failed, n: not told.
        let rows: [(Verdict, String)] = [
            (.granted, "pppppppppp"), (.malformed, "fnnnnnnnnn"), (.badKey, "pppppppfnn"), (.badIndex, "ppfnnnnnnn"),
            (.badSignatureEncoding, "pppfnnnnnn"), (.unknownCollaboration, "ppppfnnnnn"),
            (.challengeForged, "pppppfnnnn"), (.badNonce, "pppppfnnnn"), (.challengeExpired, "ppppppnnnp"),
            (.challengeElsewhere, "pppppfnnnn"),
            (.challengeReplayed, "ppppppnnnp"), (.nonceReplayed, "ppppppnnnp"), (.notParticipant, "ppppppfnnn"),
            (.badSignature, "ppppppppfn"), (.replayMemoryFull, "pppppppppf"), (.unknown, "nnnnnnnnnn"),
            (.included, "nnnnnnnnnn"), (.unlisted, "nnnnnnnnnn"),
        ]
        #expect(Set(rows.map(\.0)) == Set(Verdict.allCases))
        for (verdict, expected) in rows { #expect(told(verdict) == expected, "\(verdict)") }
        for verdict in [Verdict.challengeExpired, .challengeReplayed, .nonceReplayed] {
            #expect(explanation.told(about: .freshness, by: verdict) == .perhapsFailed)
            #expect(explanation.told(about: .spending, by: verdict) == .perhapsFailed)
            #expect(explanation.told(about: .collaboration, by: verdict) == .passed)
        }
    }
}
