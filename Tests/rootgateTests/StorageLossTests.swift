import Core
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@Suite("A service whose writer meets damage")
struct StorageLossTests {
    @Test("It refuses the change, and ends with exit code 4 for its supervisor, not by a signal")
    func exitCode() async throws {
        let process = try ServiceProcess()
        let client = try process.client()
        let name = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(name, policy: .challenge)
        try #require(truncate(process.dataDirectory + "/data.mdb", 4096) == 0)
        var code: ServiceError.Code?
        do throws(ServiceError) {
            try await client.addRoots([.zero], to: name)
        } catch {
            code = error.code
        }
        #expect(code == .storageDamaged)
        #expect(process.exitCode(within: 20) == 4)
    }
}
