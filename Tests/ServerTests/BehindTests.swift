import Collaboration
import Core
import Identity
import RootSets
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import Server

/// Requests at a service that has not heard yet of what another one has just changed, as after a client's failover.
@Suite("What a service says that is behind another one", .serialized)
struct BehindTests {
    /// Two services that share a log. The second one hears of the log when the test says so.
    private final class Scene {
        let logs: [SteeredLog]
        let services: [Service]
        let clients: [RootgateClient]
        private let scratch = ScratchDirectory()

        init(_ adjust: (Int, inout Configuration) -> Void = { _, _ in }) throws {
            let first = SteeredLog()
            logs = [first, SteeredLog(first)]
            var services: [Service] = []
            for (number, log) in logs.enumerated() {
                var configuration = Configuration(dataDirectory: "\(scratch.path)/\(number)", workers: 1)
                configuration.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
                configuration.linkBase = TestService.linkBase
                adjust(number, &configuration)
                var surroundings = Surroundings()
                surroundings.storage = log.surroundings
                services.append(try Service(configuration, surroundings: surroundings))
            }
            self.services = services
            clients = try services.map {
                try RootgateClient($0.endpoints[0], configuration: .init(requestTimeout: patience))
            }
            #expect(becomesTrue { services.allSatisfy { $0.resources.rootSets.isFresh } })
        }

        deinit {
            for client in clients { client.close() }
            for service in services { _ = service.shutDown() }
        }

        /// From now on the second service hears nothing, for a time that is shorter than the staleness.
        func fallBehind() {
            logs[1].isSilent = true
            logs[1].advance(1)
        }

        /// Lets the second service hear of the log after a while. Expects that nothing is answered before.
        func expectWaits<Answer: Sendable>(
            _ name: String, _ ask: @escaping @Sendable (RootgateClient) async throws -> Answer
        ) async throws -> Answer {
            let isAnswered = Shared(false)
            let client = clients[1]
            let asked = Task {
                defer { isAnswered.with { $0 = true } }
                return try await ask(client)
            }
            try await Task.sleep(for: .milliseconds(300))
            #expect(!isAnswered.value, "\(name): answered by a service that does not know")
            logs[1].isSilent = false
            return try await asked.value
        }

        func deck(_ name: String) async throws -> CollaborationIdentifier {
            var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: name))
            metadata.defaultPermission = .readWrite
            return try await clients[0].send(
                PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
            ).collaborationIdentifier
        }

        func participant(in deck: CollaborationIdentifier) throws -> PersonIdentity {
            PersonIdentity(rootHash: try Person(deviceCount: 1).identity(in: deck).rootHash)
        }
    }

    @Test("That something is not there is said only by a service that knows what others had changed before")
    func unknown() async throws {
        let scene = try Scene()
        scene.fallBehind()
        let deck = try await scene.deck("deck")
        let person = try scene.participant(in: deck)
        let added = try await scene.expectWaits("addParticipants") {
            try await $0.send(AddParticipants([NewParticipant(person)], to: deck))
        }
        #expect(added.sequence != nil)
        scene.fallBehind()
        let raw = try #require(CollaborationIdentifier("raw"))
        try await scene.clients[0].createCollaboration(raw, policy: .challenge)
        #expect(try await scene.expectWaits("state") { try await $0.state(of: raw) }.rootCount == 0)
        // What is not there is said to be not there.
        let none = try #require(CollaborationIdentifier("none"))
        await #expect(throws: ServiceError(.unknownCollaboration, "")) { try await scene.clients[1].state(of: none) }
    }

    @Test("When it stays unknown what others have changed, the answer is busy, and not that something is not there")
    func silence() async throws {
        let scene = try Scene()
        scene.fallBehind()
        let none = try #require(CollaborationIdentifier("none"))
        await #expect(throws: ServiceError(.busy, "")) { try await scene.clients[1].state(of: none) }
        await #expect(throws: ServiceError(.busy, "")) {
            try await scene.clients[1].send(ReadNotices(.collaboration(none)))
        }
        scene.logs[1].isSilent = false
        await #expect(throws: ServiceError(.unknownCollaboration, "")) { try await scene.clients[1].state(of: none) }
    }

    @Test("A full service removes whom another one has just added, and does not say that there was nobody to remove")
    func full() async throws {
        let scene = try Scene { number, configuration in
            // The first one has more room, so the second one has to keep what it would not have taken.
            if number == 1 { (configuration.storageBytesMax, configuration.storageReserveBytes) = (1 << 20, 4 << 20) }
        }
        let deck = try await scene.deck("deck")
        let crowd = try #require(CollaborationIdentifier("crowd"))
        try await scene.clients[0].createCollaboration(crowd, policy: .challenge)
        var random = SeededGenerator(seed: runSeed)
        for _ in 0..<8 {
            _ = try await scene.clients[0].addRoots((0..<4000).map { _ in random.digest() }, to: crowd)
        }
        let sets = scene.services[1].resources.rootSets
        #expect(
            becomesTrue {
                (try? sets.read { snapshot throws(ServiceError) in try snapshot.statistics().roots }) == 32_000
            })
        await #expect(throws: ServiceError(.storageFull, "")) {
            _ = try await scene.clients[1].addRoots([random.digest()], to: crowd)
        }
        scene.fallBehind()
        let person = try scene.participant(in: deck)
        _ = try await scene.clients[0].send(AddParticipants([NewParticipant(person)], to: deck))
        let removed = try await scene.expectWaits("removeParticipants") {
            try await $0.send(RemoveParticipants([person], from: deck))
        }
        #expect(removed.removed.count == 1 && removed.sequence != nil)
    }
}
