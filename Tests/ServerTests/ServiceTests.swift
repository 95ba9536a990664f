import Core
import Foundation
import Hashing
import Identity
import RootgateClient
import Server
import ServiceTestSupport
import Signatures
import TestSupport
import Testing
import Transport
import Wire

@Suite struct ServiceTests {
    @Test("A genuine proof is granted once and then replayed")
    func aGenuineProofIsGrantedOnceAndThenReplayed() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof()
        #expect(try await small.client.verify(proof, in: small.collaboration) == .granted)
        #expect(try await small.client.verify(proof, in: small.collaboration) == .challengeReplayed)
    }

    @Test("Every forgery gets its verdict and spends no challenge", arguments: Forgery.allCases)
    func everyForgeryGetsItsVerdictAndBurnsNothing(_ forgery: Forgery) async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let genuine = try await small.proof()
        let forged = try forgery.spoil(genuine, stranger: PrivateKey())
        #expect(try await small.client.verify(forged, in: small.collaboration) == forgery.verdict)
        #expect(try await small.client.verify(genuine, in: small.collaboration) == .granted)
    }

    @Test("Of many copies on many connections exactly one is granted")
    func ofManyCopiesOnManyConnectionsExactlyOneIsGranted() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        for _ in 0..<5 {
            let request = AccessRequest(collaboration: small.collaboration, proof: try await small.proof())
            let verdicts = try await withThrowingTaskGroup(of: Array<Verdict>.self) { group -> [Verdict] in
                for _ in 0..<8 {
                    let client = try service.client()
                    group.addTask { try await client.verify(Array(repeating: request, count: 8)).map(\.verdict) }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(verdicts.count { $0 == .granted } == 1)
            #expect(verdicts.count { $0 == .challengeReplayed } == 63)
        }
    }

    @Test("A challenge from before a restart was issued elsewhere, and one that nobody has issued is forged")
    func aChallengeDoesNotSurviveARestart() async throws {
        let directory = ScratchDirectory()
        var service: TestService? = try TestService(directory: directory)
        let small = try await SmallCollaboration(try #require(service).client())
        let proof = try await small.proof()
        service = nil
        let next = try TestService(directory: directory)
        #expect(try await next.client().verify(proof, in: small.collaboration) == .challengeElsewhere)
        let unissued = try small.person.proof(ofDevice: 0, signing: [UInt8](repeating: 7, count: 48))
        #expect(try await next.client().verify(unissued, in: small.collaboration) == .challengeForged)
        let fresh = try await next.client().challenges(1).challenges[0]
        let again = try small.person.proof(ofDevice: 0, signing: fresh)
        #expect(try await next.client().verify(again, in: small.collaboration) == .granted)
    }

    @Test("Challenges wait for a worker as proofs do, and a full queue refuses them")
    func challengesWaitForAWorker() throws {
        let service = try TestService {
            $0.workers = 1
            $0.waitingProofsMax = 1
        }
        let peer = try RawPeer(service.endpoint)
        // They arrive together, and are all queued before the only worker makes the first ones.
        var bytes: [UInt8] = []
        for number in 0..<16 {
            var body: [UInt8] = []
            Request.issueChallenges(count: Limits.challengesPerRequestMax).append(to: &body)
            FrameWriter.append(.request, Operation.issueChallenges.rawValue, requestID: UInt64(number), to: &bytes) {
                $0 += body
            }
        }
        peer.send(bytes)
        var refused = 0
        for _ in 0..<16 {
            let frame = try #require(peer.readFrame())
            if frame.header.kind == .error {
                refused += 1
            } else {
                #expect(frame.body.count == 16 + 48 * Limits.challengesPerRequestMax)
            }
        }
        #expect(refused > 0)
        // No challenge at all is no work.
        peer.send(.issueChallenges(count: 0), id: 99)
        #expect(peer.readFrame()?.body.count == 16)
    }

    @Test("A challenge expires")
    func aChallengeExpires() async throws {
        let service = try TestService { $0.challengeSeconds = 1 }
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof()
        try await Task.sleep(for: .milliseconds(1100))
        #expect(try await small.client.verify(proof, in: small.collaboration) == .challengeExpired)
    }

    @Test("A removal is in force before its receipt is seen")
    func removalsAreInForceBeforeTheirReceipts() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof()
        try await small.client.removeRoots([small.person.rootHash], from: small.collaboration)
        #expect(try await small.client.verify(proof, in: small.collaboration) == .notParticipant)
    }

    @Test("A verify can demand a change and spends nothing before it")
    func aVerifyCanDemandAChangeAndSpendsNothingBeforeIt() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let client = small.client
        let last = try #require(try await client.statistics().first { $0.name == "sequence" }?.value)
        let request = AccessRequest(collaboration: small.collaboration, proof: try await small.proof())
        for early in [last + 1, last + 1000, .max] {
            await #expect(throws: ServiceError(.behindSequence, "")) {
                try await client.verify([request], atLeast: early)
            }
            await #expect(throws: ServiceError(.behindSequence, "")) {
                try await client.verifyInclusion([request], atLeast: early)
            }
            await #expect(throws: ServiceError(.behindSequence, "")) { try await client.verify([], atLeast: early) }
        }
        #expect(try await client.verifyInclusion([request], atLeast: last)[0].verdict == .included)
        await #expect(throws: ServiceError(.behindSequence, "")) {
            try await client.verify(request.proof, in: small.collaboration, atLeast: last + 1)
        }
        #expect(try await client.verify([request], atLeast: last)[0].verdict == .granted)
    }

    @Test("A device nonce is accepted once per key")
    func aDeviceNonceIsAcceptedOncePerKey() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client(), policy: .deviceNonce(windowSeconds: 60))
        let nonce = [UInt8](repeating: 9, count: 16)
        let first = try small.person.proof(ofDevice: 0, signing: nonce)
        let other = try small.person.proof(ofDevice: 1, signing: nonce)
        let short = try small.person.proof(ofDevice: 0, signing: Array(nonce.dropLast()))
        #expect(try await small.client.verify(first, in: small.collaboration) == .granted)
        #expect(try await small.client.verify(first, in: small.collaboration) == .nonceReplayed)
        #expect(try await small.client.verify(other, in: small.collaboration) == .granted)
        #expect(try await small.client.verify(short, in: small.collaboration) == .badNonce)
    }

    @Test("A batch mixes collaborations and returns root hashes")
    func aBatchMixesCollaborationsAndReturnsRootHashes() async throws {
        let service = try TestService()
        let client = try service.client()
        let collaborations = [
            try await SmallCollaboration(client, named: "a"), try await SmallCollaboration(client, named: "b"),
        ]
        var requests: [AccessRequest] = []
        for number in 0..<100 {
            requests.append(
                AccessRequest(
                    collaboration: collaborations[number % 2].collaboration,
                    proof: try await collaborations[number % 2].proof()))
        }
        let stranger = AccessRequest(
            collaboration: collaborations[0].collaboration, proof: try await collaborations[1].proof())
        let nowhere = AccessRequest(
            collaboration: try #require(CollaborationIdentifier("nowhere")), proof: try await collaborations[0].proof())
        let decisions = try await client.verify(requests + [stranger, nowhere], wantsRoots: true)
        for (number, decision) in decisions.prefix(100).enumerated() {
            #expect(decision.verdict == .granted)
            #expect(decision.rootHash == collaborations[number % 2].person.rootHash)
        }
        #expect(decisions[100].verdict == .notParticipant)
        #expect(decisions[100].rootHash == collaborations[1].person.rootHash)
        #expect(decisions[101].verdict == .unknownCollaboration)
        #expect(decisions[101].rootHash == nil)
    }

    @Test("A member key that is no point of the curve is a bad key")
    func aMemberKeyThatIsNoPointOfTheCurveIsABadKey() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        var proof = try await small.proof()
        proof.publicKey[64] ^= 1
        #expect(try await small.client.verify(proof, in: small.collaboration) == .notParticipant)
        proof.inclusionHashes = []
        try await small.client.addRoots([SHA256.hash(proof.publicKey)], to: small.collaboration)
        #expect(try await small.client.verify(proof, in: small.collaboration) == .badKey)
    }

    @Test("Inclusion only looks at no signature")
    func inclusionOnlyLooksAtNoSignature() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        var proof = try await small.proof()
        proof.signature = []
        proof.data = []
        var other = proof
        other.publicKeyIndex ^= 1
        let decisions = try await small.client.verifyInclusion([
            AccessRequest(collaboration: small.collaboration, proof: proof),
            AccessRequest(collaboration: small.collaboration, proof: other),
        ])
        #expect(decisions.map(\.verdict) == [.included, .notParticipant])
    }

    @Test("Every mutation is in the change log and in the sets")
    func everyMutationIsInTheChangeLogAndInTheSets() async throws {
        let service = try TestService()
        let client = try service.client()
        let small = try await SmallCollaboration(client)
        var generator = SeededGenerator(seed: runSeed)
        let roots = (0..<100).map { _ in generator.digest() }
        let add = Mutation(.addRoots(small.collaboration, roots))
        let receipt = try await client.apply(add)
        #expect(receipt == MutationReceipt(sequence: 3, changed: 100, isRepeat: false))
        #expect(try await client.apply(add) == MutationReceipt(sequence: 3, changed: 100, isRepeat: true))
        await #expect(throws: ServiceError(.mutationConflict, "")) {
            try await client.apply(Mutation(identifier: add.identifier, .addRoots(small.collaboration, [])))
        }
        #expect(try await client.testRoots([roots[0], .zero], in: small.collaboration) == [true, false])
        #expect(try await client.state(of: small.collaboration).rootCount == 101)
        var listed: [Digest] = []
        while true {
            let page = try await client.roots(of: small.collaboration, after: listed.last, limit: 17)
            listed += page.items
            if !page.hasMore { break }
        }
        #expect(listed == (roots + [small.person.rootHash]).sorted())
        let changes = try await client.changes(after: 0)
        #expect(changes.items.map(\.sequence) == [1, 2, 3])
        let logged = try #require(changes.items.last).mutation
        let own = withUnsafeBytes(of: add.identifier.value.littleEndian) { Array($0) }
        let identifier = ReferenceSHA256.hash([UInt8](repeating: 0, count: 16) + own + [0]).prefix(16)
        #expect(logged.change == add.change && "\(logged.identifier)" == Array(identifier).hexadecimal)
        try await client.dropCollaboration(small.collaboration)
        #expect(try await client.collaborations().items.isEmpty)
    }

    @Test("Many tasks share one connection")
    func manyTasksShareOneConnection() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let requests = try await small.proofs(200)
        let verdicts = try await withThrowingTaskGroup(of: Verdict.self) { group in
            for request in requests {
                group.addTask { try await small.client.verify(request.proof, in: request.collaboration) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(verdicts.count == 200)
        #expect(verdicts.allSatisfy { $0 == .granted })
        // A request counts until its answer was handed to the system, and the client may have read it before.
        var figures: [String: UInt64] = [:]
        for _ in 0..<1000 where figures["requests-in-flight"] != 1 {
            figures = Dictionary(uniqueKeysWithValues: try await small.client.statistics().map { ($0.name, $0.value) })
        }
        #expect(figures["verdict-granted"] == 200)
        #expect(figures["connections"] == 1)
        #expect(figures["requests-in-flight"] == 1)
    }

    @Test(
        "A client written from the specification alone agrees in everything",
        .enabled(if: python != nil, "needs python3 with the package cryptography"))
    func aClientWrittenFromTheSpecificationAloneAgreesInEverything() async throws {
        let service = try TestService { $0.linkBase = "https://example.com/collab" }
        let python = try #require(python)
        // The simulator's proofs, for the other side to check.
        let collaboration = try #require(CollaborationIdentifier("simulated"))
        var lines = ""
        for encoding in KeyEncoding.allCases {
            for format in SignatureFormat.allCases {
                let person = try Person(deviceCount: 3).identity(in: collaboration, encoding: encoding)
                for device in person.keys.indices {
                    let data = RandomSource.system.bytes(48)
                    let proof = try person.proof(ofDevice: device, signing: data, format: format)
                    let object: [String: Any] = [
                        "publicKey": Data(proof.publicKey).base64EncodedString(),
                        "publicKeyIndex": proof.publicKeyIndex,
                        "inclusionHashes": proof.inclusionHashes.map { Data($0.bytes).base64EncodedString() },
                        "signature": Data(proof.signature).base64EncodedString(),
                        "signatureFormat": format.name, "data": Data(data).base64EncodedString(),
                        "rootHash": person.rootHash.description,
                    ]
                    lines += String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self) + "\n"
                }
            }
        }
        let file = service.directory.path + "/proofs.jsonl"
        try Data(lines.utf8).write(to: URL(fileURLWithPath: file))
        let result = try runProgram(
            python,
            [
                packageFile("Tests/Python/interoperability.py"), "127.0.0.1", "\(service.endpoint.port)", "--proofs",
                file,
            ], environment: pythonEnvironment)
        #expect(result.code == 0, "\(result.output)\(result.errors)")
    }
}
