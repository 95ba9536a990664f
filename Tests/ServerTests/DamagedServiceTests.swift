import Core
@testable import RootSets
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

@Suite("A service with a damaged storage")
struct DamagedServiceTests {
    @Test("Pings get the error, the statistics tell it, nothing is added, and what is intact is answered and removed")
    func leavesRotation() async throws {
        let service = try TestService()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.ping()
        try await client.createCollaboration(deck)
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
        do throws(ServiceError) { _ = try await client.addRoots([.zero], to: deck) } catch { codes.append(error.code) }
        do throws(ServiceError) {
            _ = try await client.removeRoots([.zero], from: deck)
        } catch {
            codes.append(error.code)
        }
        #expect(codes == [.storageDamaged, .storageDamaged])
        #expect(try await figure("collaborations") == 1)
    }
}
