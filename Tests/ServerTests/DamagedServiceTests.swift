import Collaboration
import Core
import Identity
@testable import RootSets
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

@Suite("A service with a damaged storage")
struct DamagedServiceTests {
    @Test("While the check of the start goes on, pings are answered, and who needs what it has not come to gets busy")
    func checking() async throws {
        let service = try TestService()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck)
        let sets = service.service.resources.rootSets
        #expect(becomesTrue { sets.health.isChecked })
        let trust = try sets.read { snapshot throws(ServiceError) in snapshot.environment.trust }
        trust.beginCheck()
        sets.health.note(isChecked: false)
        trust.noteChecked(.meta)
        try await Task.sleep(for: .milliseconds(Limits.uncheckedWaitMilliseconds + 50))
        func refusal(_ body: () async throws -> Void) async -> ServiceError? {
            do {
                try await body()
                return nil
            } catch {
                return error as? ServiceError
            }
        }
        let begin = ContinuousClock.now
        for _ in 0..<100 {
            let count = await refusal { _ = try await client.state(of: deck) }
            let changes = await refusal { _ = try await client.changes(after: 0) }
            #expect(count?.retryAfter == .milliseconds(100) && changes?.retryAfter == .milliseconds(100))
            try await client.ping()
        }
        #expect(.now - begin < .seconds(30))
        for name in [DatabaseName.records, .packed, .large] { trust.noteChecked(name) }
        #expect(await refusal { _ = try await client.state(of: deck) } == nil)
        let nobody = try #require(PrincipalName("nobody"))
        // A change of the layer looks for an earlier one with its identifier, which is checked last.
        let change = await refusal { _ = try await client.send(RemovePrincipal(nobody)) }
        #expect(change?.retryAfter == .milliseconds(100))
        #expect(await refusal { _ = try await client.changes(after: 0) }?.code == .busy)
        for name in DatabaseName.allCases { trust.noteChecked(name) }
        #expect(await refusal { _ = try await client.changes(after: 0) } == nil)
    }

    @Test("Pings get the error, the statistics tell it, nothing is added, and what is intact is answered and removed")
    func leavesRotation() async throws {
        let service = try TestService()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.ping()
        try await client.createCollaboration(deck)
        try await client.addRoots([.zero], to: deck)
        let health = service.service.resources.rootSets.health
        #expect(becomesTrue { health.isChecked })
        func figure(_ name: String) async throws -> UInt64? {
            try await client.statistics().first { $0.name == name }?.value
        }
        #expect(try await figure("storage-checked") == 1)
        #expect(try await figure("storage-damaged") == 0)
        health.report(.damaged, "as a test says")
        #expect(try await figure("storage-damaged") == 1)
        var codes: [ServiceError.Code] = []
        do throws(ServiceError) { try await client.ping() } catch { codes.append(error.code) }
        let other = try #require(Digest([UInt8](repeating: 1, count: 32)))
        do throws(ServiceError) { try await client.addRoots([other], to: deck) } catch { codes.append(error.code) }
        #expect(codes == [.storageDamaged, .storageDamaged])
        #expect(try await client.state(of: deck).rootCount == 1)
        #expect(try await client.removeRoots([.zero], from: deck).changed == 1)
        #expect(try await client.state(of: deck).rootCount == 0)
        #expect(try await figure("collaborations") == 1)
    }

    @Test("Who has not joined yet gets in while the storage is damaged")
    func joining() async throws {
        let service = try TestService { $0.linkBase = "https://decks.example/c" }
        let client = try service.client()
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let deck = try await client.send(
            PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        ).collaborationIdentifier
        let person = try Person(deviceCount: 1).identity(in: deck)
        _ = try await client.send(
            AddParticipants([NewParticipant(PersonIdentity(rootHash: person.rootHash))], to: deck))
        let challenge = try await client.challenges(1).challenges[0]
        let health = service.service.resources.rootSets.health
        #expect(becomesTrue { health.isChecked })
        health.report(.damaged, "as a test says")
        #expect(try await client.open(try person.proof(ofDevice: 0, signing: challenge), in: deck).grant != nil)
    }

    @Test("Who shows a proof or a grant gets the error, not less access, while the record of the access is damaged")
    func access() async throws {
        let service = try TestService { $0.linkBase = "https://decks.example/c" }
        let client = try service.client()
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let deck = try await client.send(
            PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        ).collaborationIdentifier
        let person = try Person(deviceCount: 1).identity(in: deck)
        let identity = PersonIdentity(rootHash: person.rootHash)
        _ = try await client.send(AddParticipants([NewParticipant(identity)], to: deck))
        let proof = try person.proof(ofDevice: 0, signing: try await client.challenge())
        let grant = try #require(try await client.open(proof, in: deck).grant)
        #expect(try await client.check([GrantCheck(grant, in: deck)]).first?.status == .valid)
        let again = try person.proof(ofDevice: 0, signing: try await client.challenge())
        #expect(becomesTrue { service.service.resources.rootSets.health.isChecked })
        var edit = Edit(deck)
        edit.records = [RecordEdit(OwnAccess.key(deck, identity), value: [7])]
        _ = try service.service.resources.rootSets.apply(Mutation(.edit(edit)))
        await #expect(throws: ServiceError(.storageDamaged, "")) {
            _ = try await client.check([GrantCheck(grant, in: deck)])
        }
        await #expect(throws: ServiceError(.storageDamaged, "")) { _ = try await client.open(again, in: deck) }
        // Whoever was shut out by the damage is removed as anybody.
        #expect(try await client.removeRoots([person.rootHash], from: deck).changed == 1)
    }
}
