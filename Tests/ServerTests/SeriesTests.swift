import Core
import Identity
import Principals
import RootgateClient
@testable import RootSets
import ServiceTestSupport
import Signatures
import TestSupport
import Testing
import Transport
import Wire

@testable import Server

/// Requests of one proof each that follow one another on a connection.
@Suite struct SeriesTests {
    private struct Ask {
        var operation = Wire.Operation.verify
        var collaboration: CollaborationIdentifier
        var proof: SignedIdentityProof
        var atLeast: UInt64 = 0
    }

    /// What a request got.
    private enum Answer: Equatable {
        case verdict(Verdict)
        case error(ServiceError.Code)
        case other
    }

    private func frames(_ asks: [Ask]) throws -> [UInt8] {
        var bytes: [UInt8] = []
        for (number, ask) in asks.enumerated() {
            var body: [UInt8] = []
            try ProofBatch.append(
                [(0, ask.proof)], of: [ask.collaboration], isSigned: ask.operation == .verify, wantsRoots: false,
                atLeast: ask.atLeast, to: &body)
            FrameWriter.append(.request, ask.operation.rawValue, requestID: UInt64(number), to: &bytes) { $0 += body }
        }
        return bytes
    }

    /// The answers in the order of the requests, whose identifiers are their places.
    private func answers(_ count: Int, from peer: RawPeer) throws -> [Answer] {
        var answers = [Answer?](repeating: nil, count: count)
        for _ in 0..<count {
            let (header, body) = try #require(peer.readFrame(), "the connection has ended")
            let place = try #require(Int(exactly: header.requestID))
            try #require(answers.indices.contains(place) && answers[place] == nil, "answered twice")
            answers[place] = try body.withRawBytes { bytes throws(ServiceError) -> Answer in
                if header.kind == .error { return .error(try FrameWriter.decodeError(bytes).code) }
                let (verdicts, _) = try VerdictList.decode(bytes)
                return verdicts.count == 1 ? .verdict(verdicts[0]) : .other
            }
        }
        return answers.compactMap { $0 }
    }

    @Test("Damage that one request of a series meets is an error for that one alone")
    func damaged() async throws {
        let service = try TestService()
        let client = try service.client()
        let small = try await SmallCollaboration(client)
        let crowd = try #require(CollaborationIdentifier("crowd"))
        var random = SeededGenerator(seed: runSeed)
        try await client.createCollaboration(crowd)
        // So many that they are in another database than those of a small set.
        _ = try await client.addRoots((0..<200).map { _ in random.digest() }, to: crowd)
        let sets = service.service.resources.rootSets
        #expect(becomesTrue { sets.health.isChecked })
        try sets.read { snapshot throws(ServiceError) in snapshot.environment.trust.distrust(.large) }
        var asks: [Ask] = []
        for place in 0..<40 {
            asks.append(
                Ask(
                    operation: .verifyInclusion, collaboration: place % 3 == 0 ? crowd : small.collaboration,
                    proof: try await small.proof()))
        }
        let peer = try RawPeer(service.endpoint)
        peer.send(try frames(asks))
        let answers = try answers(asks.count, from: peer)
        for (place, answer) in answers.enumerated() {
            #expect(answer == (place % 3 == 0 ? .error(.storageDamaged) : .verdict(.included)), "\(place)")
        }
    }

    @Test("Each request of a series gets its own answer, in whatever pieces it arrives")
    func ownAnswers() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let future = try await small.client.changes(after: 0).items.count + 1000
        let unknown = try #require(CollaborationIdentifier("unknown"))
        var random = SeededGenerator(seed: runSeed)
        let peer = try RawPeer(service.endpoint)
        for round in 0..<8 {
            var asks: [Ask] = []
            var expected: [Answer] = []
            for _ in 0..<100 {
                var ask = Ask(collaboration: small.collaboration, proof: try await small.proof())
                switch Int.random(in: 0..<6, using: &random) {
                case 0:
                    let forgery = try #require(Forgery.allCases.randomElement(using: &random))
                    ask.proof = try forgery.spoil(ask.proof, stranger: PrivateKey())
                    expected.append(.verdict(forgery.verdict))
                case 1:
                    ask.operation = .verifyInclusion
                    expected.append(.verdict(.included))
                case 2:
                    ask.collaboration = unknown
                    expected.append(.verdict(.unknownCollaboration))
                case 3 where round % 2 == 0:
                    ask.atLeast = UInt64(future)
                    expected.append(.error(.behindSequence))
                default: expected.append(.verdict(.granted))
                }
                asks.append(ask)
            }
            let bytes = try frames(asks)
            // All at once, or cut somewhere.
            let cut = round < 2 ? bytes.count : Int.random(in: 0...bytes.count, using: &random)
            peer.send(bytes[..<cut])
            if round >= 2 { try await Task.sleep(for: .milliseconds(5)) }
            peer.send(bytes[cut...])
            #expect(try answers(100, from: peer) == expected, "seed \(runSeed), round \(round)")
        }
        #expect(becomesTrue { service.service.memory.heldBytes == 0 })
        var figures: [String: UInt64] = [:]
        // A request gives its memory back before it is counted as answered.
        for _ in 0..<3000 where figures["requests-in-flight"] != 1 {
            if !figures.isEmpty { try await Task.sleep(for: .milliseconds(10)) }
            figures = Dictionary(uniqueKeysWithValues: try await small.client.statistics().map { ($0.name, $0.value) })
        }
        #expect(figures["requests-in-flight"] == 1)
        #expect(figures["requests", default: 0] >= 800)
    }

    @Test("A proof that is sent many times in a series is granted once")
    func replays() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let ask = Ask(collaboration: small.collaboration, proof: try await small.proof())
        let peer = try RawPeer(service.endpoint)
        peer.send(try frames(Array(repeating: ask, count: 64)))
        let answers = try answers(64, from: peer)
        #expect(answers.count { $0 == .verdict(.granted) } == 1)
        #expect(answers.count { $0 == .verdict(.challengeReplayed) } == 63)
    }

    @Test("A role that does not cover one collaboration of a series refuses only the requests about it")
    func roles() async throws {
        let guarded = try await GuardedService()
        let enrolKey = try await guarded.principal("enrol", [LimitedRole(.enrol, prefixes: [.every])])
        let key = try await guarded.principal(
            "verifier", [LimitedRole(.verify, prefixes: [try #require(CollaborationPrefix("small"))])])
        let enrol = try guarded.client(enrolKey)
        let (mine, other) = try await (
            SmallCollaboration(enrol, named: "small-1"), SmallCollaboration(enrol, named: "large")
        )
        let verifier = try guarded.client(key)
        var asks: [Ask] = []
        for number in 0..<20 {
            let challenge = try await verifier.challenge()
            let small = number % 5 == 3 ? other : mine
            asks.append(
                Ask(
                    collaboration: small.collaboration,
                    proof: try small.person.proof(ofDevice: 0, signing: challenge)))
        }
        let peer = try guarded.peer(key)
        peer.send(try frames(asks))
        let expected: [Answer] = (0..<20).map { $0 % 5 == 3 ? .error(.roleMissing) : .verdict(.granted) }
        #expect(try answers(20, from: peer) == expected)
    }

    @Test("Limits of a principal refuse single requests of a series, not all of it")
    func limits() async throws {
        let guarded = try await GuardedService()
        let enrol = try guarded.client(
            try await guarded.principal("enrol", [LimitedRole(.enrol, prefixes: [.every])]))
        let small = try await SmallCollaboration(enrol)
        let proof = try small.person.proof(ofDevice: 0, signing: [UInt8](repeating: 1, count: 40))
        let asks = (0..<40).map { _ in
            Ask(operation: .verifyInclusion, collaboration: small.collaboration, proof: proof)
        }
        var slow = PrincipalLimits()
        slow.proofsPerSecond = 5
        let slowKey = try await guarded.principal(
            "slow", [LimitedRole(.verify, prefixes: [.every])], limits: slow)
        let slowPeer = try guarded.peer(slowKey)
        slowPeer.send(try frames(asks))
        let slowAnswers = try answers(40, from: slowPeer)
        let included = slowAnswers.count { $0 == .verdict(.included) }
        #expect((5...10).contains(included))
        #expect(slowAnswers.count { $0 == .error(.busy) } == 40 - included)
        var none = PrincipalLimits()
        none.requestsInFlight = 0
        let nonePeer = try guarded.peer(
            try await guarded.principal("none", [LimitedRole(.verify, prefixes: [.every])], limits: none))
        nonePeer.send(try frames(asks))
        #expect(try answers(40, from: nonePeer).allSatisfy { $0 == .error(.limitExceeded) })
    }

    @Test("Without memory that every request may use, a series is handled one by one and uses the reserve")
    func reserve() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof()
        let memory = service.service.memory
        let account = memory.account(for: .address(UInt32(1)))
        let charge = account.take(memory.bytesMax)
        let asks = (0..<8).map { _ in
            Ask(operation: .verifyInclusion, collaboration: small.collaboration, proof: proof)
        }
        let peer = try RawPeer(service.endpoint)
        peer.send(try frames(asks))
        #expect(try answers(8, from: peer) == Array(repeating: .verdict(.included), count: 8))
        account.giveBack(charge)
    }

    @Test("A series that is answered after its connection has ended holds no memory")
    func endedConnection() async throws {
        let service = try TestService()
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof()
        let asks = (0..<100).map { _ in
            Ask(operation: .verifyInclusion, collaboration: small.collaboration, proof: proof)
        }
        let bytes = try frames(asks)
        for _ in 0..<50 {
            let peer = try RawPeer(service.endpoint)
            peer.send(bytes)
        }
        try await small.client.ping()
        #expect(becomesTrue { service.service.memory.heldBytes == 0 })
    }
}
