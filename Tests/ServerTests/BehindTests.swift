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

@testable import Server

/// Requests at a service that has not heard yet of what another one has just changed, as after a client's failover.
@Suite("What a service says that is behind another one", .serialized)
struct BehindTests {
    /// Two services that share a log. The second one hears of the log when the test says so.
    private final class Scene {
        let logs: [SteeredLog]
        let services: [Service]
        private(set) var clients: [RootgateClient]
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

        /// Gives the services an administrator, whose key the clients have from now on.
        func beGuarded() async throws {
            let key = APIKey.random()
            _ = try await clients[0].send(
                CreatePrincipal(
                    try GuardedService.name("root"), roles: [LimitedRole(.administer, prefixes: [.every])],
                    key: NewKey(KeyHash(key))))
            let anonymous = clients
            clients = try services.map {
                try RootgateClient($0.endpoints[0], configuration: .init(requestTimeout: patience, key: key))
            }
            let isGuarded = try await comesTrue {
                do throws(ServiceError) {
                    _ = try await anonymous[1].statistics()
                    return false
                } catch {
                    return error.code == .roleMissing
                }
            }
            #expect(isGuarded)
            for client in anonymous { client.close() }
            for client in clients { _ = try await client.send(ListPrincipals()) }
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
        let bo = try #require(Account("bo"))
        await #expect(throws: ServiceError(.busy, "")) {
            try await scene.clients[1].send(AcceptInvitation(.random(), for: bo))
        }
        scene.logs[1].isSilent = false
        await #expect(throws: ServiceError(.unknownCollaboration, "")) { try await scene.clients[1].state(of: none) }
    }

    @Test("A removal by administrators reaches what another service has just made, and is not called needless")
    func principals() async throws {
        let scene = try Scene()
        try await scene.beGuarded()
        let (guest, other) = (try GuardedService.name("guest"), try GuardedService.name("other"))
        let key = KeyHash(APIKey.random())
        scene.fallBehind()
        _ = try await scene.clients[0].send(CreatePrincipal(guest, roles: [], key: NewKey(key)))
        let keyless = try await scene.expectWaits("removeKey") { try await $0.send(RemoveKey(key.identifier)) }
        #expect(keyless.changed == 1 && keyless.sequence != nil)
        scene.fallBehind()
        let role = LimitedRole(.observe, prefixes: [.every])
        _ = try await scene.clients[0].send(UpdatePrincipal(guest, roles: .set([role])))
        let powerless = try await scene.expectWaits("updatePrincipal") {
            try await $0.send(UpdatePrincipal(guest, roles: .clear))
        }
        #expect(powerless.changed == 1 && powerless.sequence != nil)
        scene.fallBehind()
        _ = try await scene.clients[0].send(CreatePrincipal(other, roles: [role]))
        let removed = try await scene.expectWaits("removePrincipal") { try await $0.send(RemovePrincipal(other)) }
        #expect(removed.changed == 1 && removed.sequence != nil)
        // What is not there is said to be not there.
        let none = try await scene.clients[1].send(RemovePrincipal(other))
        #expect(none.changed == 0 && none.sequence == nil)
    }

    @Test("An invitation that another service has just made is accepted, and not called unknown")
    func invitation() async throws {
        let scene = try Scene()
        let deck = try await scene.deck("deck")
        let token = InvitationToken.random()
        let bo = try #require(Account("bo"))
        scene.fallBehind()
        _ = try await scene.clients[0].send(CreateInvitation(to: deck, token: token))
        let accepted = try await scene.expectWaits("acceptInvitation") {
            try await $0.send(AcceptInvitation(token, for: bo))
        }
        #expect(accepted.state == .accepted && accepted.collaborationIdentifier == deck)
        #expect(try await scene.clients[1].send(AcceptInvitation(.random(), for: bo)).refusal == .unknown)
    }

    @Test("The receipt of a request that was applied is repeated by a service that is behind, without a wait")
    func repetition() async throws {
        let scene = try Scene()
        scene.fallBehind()
        let deck = try await scene.deck("deck")
        let request = AddParticipants([NewParticipant(try scene.participant(in: deck))], to: deck)
        let identifier = MutationIdentifier.random()
        let added = try await scene.expectWaits("addParticipants") {
            try await $0.send(request, identifier: identifier)
        }
        #expect(added.changed == 1 && added.sequence != nil)
        scene.fallBehind()
        let again = try await scene.clients[1].send(request, identifier: identifier)
        #expect(again.changed == 0 && again.sequence == added.sequence)
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
