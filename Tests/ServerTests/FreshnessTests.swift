import Collaboration
import Core
import Identity
import Principals
import RootSets
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport
import Wire

@testable import Server

/// Requests during which a storage gets older than it may be. A machine can stop a process at any place for any time,
/// so the clock jumps at each look that a request takes at it.
@Suite("Answers of a service whose storage gets stale while it answers", .serialized)
struct FreshnessTests {
    private final class Scene {
        let log = SteeredLog()
        let service: Service
        let client: RootgateClient
        let small: SmallCollaboration
        let deck: CollaborationIdentifier
        private let scratch = ScratchDirectory()

        init() async throws {
            var configuration = Configuration(dataDirectory: scratch.path + "/data", workers: 1)
            configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
            configuration.linkBase = TestService.linkBase
            var surroundings = Surroundings()
            surroundings.storage = log.surroundings
            let service = try Service(configuration, surroundings: surroundings)
            self.service = service
            #expect(becomesTrue { service.resources.rootSets.isFresh })
            client = try RootgateClient(service.endpoints[0], configuration: .init(requestTimeout: patience))
            small = try await SmallCollaboration(client)
            var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
            metadata.defaultPermission = .readWrite
            deck = try await client.send(
                PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
            ).collaborationIdentifier
        }

        deinit {
            client.close()
            _ = service.shutDown()
        }

        /// Runs a request without a jump, and then with one at each of its looks at the clock. `make` is called before
        /// each of them, for what a request needs of its own.
        ///
        /// `looks`: how often the request looks at the clock. There is one at its beginning, and the last one is at its
        /// answer. Questions about what is there note when they arrived. Signed proofs take one look before their
        /// challenges are spent, and one behind that.
        ///
        /// Expects that every jump makes the request stale.
        func expectStale<Input>(
            _ name: String, looks: Int = 3, make: () async throws -> Input, ask: (Input) async throws -> Void
        ) async throws {
            var least = Int.max
            // The fewest are the request's own.
            for _ in 0..<3 {
                let input = try await make()
                log.begin()
                try await ask(input)
                least = min(least, log.looks)
            }
            #expect(least == looks, "\(name): the time is not looked at where it was")
            for look in 1...max(1, looks) {
                log.begin()
                #expect(becomesTrue { self.service.resources.rootSets.isFresh })
                let input = try await make()
                log.begin(jumpingAt: look)
                do {
                    try await ask(input)
                    Issue.record("\(name): answered although the storage was stale at look \(look) of \(looks)")
                } catch {
                    #expect((error as? ServiceError)?.code == .stale, "\(name), look \(look): \(error)")
                }
                #expect(log.looks >= look, "\(name): the clock did not jump at look \(look)")
            }
            log.begin()
            #expect(becomesTrue { self.service.resources.rootSets.isFresh })
        }
    }

    @Test("Lists and questions about root hashes say stale when the time is over before the answer")
    func reads() async throws {
        let scene = try await Scene()
        let (client, small) = (scene.client, scene.small)
        let roots = [small.person.rootHash]
        try await scene.expectStale("testRoots", make: {}) {
            _ = try await client.testRoots(roots, in: small.collaboration)
        }
        try await scene.expectStale("listRoots", make: {}) { _ = try await client.roots(of: small.collaboration) }
        try await scene.expectStale("collaborationState", make: {}) {
            _ = try await client.state(of: small.collaboration)
        }
        try await scene.expectStale("listCollaborations", make: {}) { _ = try await client.collaborations() }
    }

    @Test("Proofs and grants say stale when the time is over before the answer, and spend nothing before that")
    func proofs() async throws {
        let scene = try await Scene()
        let (client, small, deck) = (scene.client, scene.small, scene.deck)
        try await scene.expectStale("verify", looks: 4, make: { try await small.proofs(40) }) {
            _ = try await client.verify($0)
        }
        let person = try Person(deviceCount: 1).identity(in: deck)
        _ = try await client.send(
            AddParticipants([NewParticipant(PersonIdentity(rootHash: person.rootHash))], to: deck))
        func proof() async throws -> SignedIdentityProof {
            try person.proof(ofDevice: 0, signing: try await client.challenge())
        }
        let grant = try #require(try await client.open(try await proof(), in: deck).grant)
        try await scene.expectStale("open", looks: 4, make: proof) { _ = try await client.open($0, in: deck) }
        try await scene.expectStale("checkGrants", looks: 2, make: {}) {
            _ = try await client.check([GrantCheck(grant, in: deck)])
        }
    }

    @Test("A query that waits says stale when the time is over before nothing has changed")
    func queries() async throws {
        let scene = try await Scene()
        let (client, deck) = (scene.client, scene.deck)
        let known = try await client.send(ReadNotices(.collaboration(deck))).next
        var query = ReadNotices(.collaboration(deck))
        query.after = known
        let now = query
        query.waitMilliseconds = 300
        let later = query
        try await scene.expectStale("a query", make: {}) { _ = try await client.send(now) }
        try await scene.expectStale("a query that waits", looks: 4, make: {}) { _ = try await client.send(later) }
    }

    @Test("Requests of one proof that are verified together say stale when the time is over before their answers")
    func series() async throws {
        let scene = try await Scene()
        let peer = try RawPeer(scene.service.endpoints[0])
        try await scene.expectStale("a series", looks: 4, make: { try await scene.small.proofs(4) }) { requests in
            var bytes: [UInt8] = []
            for (number, request) in requests.enumerated() {
                var body: [UInt8] = []
                try ProofBatch.append(
                    [(0, request.proof)], of: [request.collaboration], isSigned: true, wantsRoots: false, atLeast: 0,
                    to: &body)
                FrameWriter.append(
                    .request, Wire.Operation.verify.rawValue, requestID: UInt64(number), to: &bytes
                ) { $0 += body }
            }
            peer.send(bytes)
            var codes: [ServiceError.Code?] = []
            for _ in requests {
                let (header, body) = try #require(peer.readFrame())
                codes.append(
                    header.kind == .error
                        ? try body.withRawBytes { bytes throws(ServiceError) in try FrameWriter.decodeError(bytes).code
                        }
                        : nil)
            }
            #expect(Set(codes).count == 1, "some of the answers are stale and some are not: \(codes)")
            if let code = codes.first ?? nil { throw ServiceError(code, "") }
        }
    }
}
