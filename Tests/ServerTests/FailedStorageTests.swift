import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

@Suite("A service whose storage fails")
struct FailedStorageTests {
    private func code(_ body: () async throws(ServiceError) -> Void) async -> ServiceError.Code? {
        do throws(ServiceError) {
            try await body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("A ping and everything that needs the storage get storage-damaged, and the statistics tell it")
    func readiness() async throws {
        let service = try TestService()
        let client = try service.client()
        let name = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(name, policy: .challenge)
        try await client.addRoots([.zero], to: name)
        try await client.ping()
        let before = try await client.statistics()
        #expect(before.first { $0.name == "storage-failed" }?.value == 0)
        #expect(before.first { $0.name == "storage-damaged" }?.value == 0)
        #expect(before.contains { $0.name == "roots" })

        try #require(truncate(service.directory.path + "/data/data.mdb", 4096) == 0)
        // Whatever meets it first, and from then on everything.
        #expect(
            await code { () throws(ServiceError) in _ = try await client.testRoots([.zero], in: name) }
                == .storageDamaged)
        for _ in 0..<3 {
            #expect(await code { () throws(ServiceError) in try await client.ping() } == .storageDamaged)
            #expect(
                await code { () throws(ServiceError) in _ = try await client.addRoots([.zero], to: name) }
                    == .storageDamaged)
            #expect(
                await code { () throws(ServiceError) in _ = try await client.testRoots([.zero], in: name) }
                    == .storageDamaged)
        }
        let after = try await client.statistics()
        #expect(after.first { $0.name == "storage-failed" }?.value == 1)
        #expect(!after.contains { $0.name == "roots" })
        #expect(try await client.hello().version == 1)
    }

    @Test("A data folder that is deleted under a service acknowledges no change, and nothing new takes its place")
    func deletedFolder() async throws {
        let service = try TestService()
        let client = try service.client()
        let name = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(name, policy: .challenge)
        try await client.addRoots([.zero], to: name)
        let folder = service.directory.path + "/data"
        try FileManager.default.removeItem(atPath: folder)
        for _ in 0..<3 {
            #expect(
                await code { () throws(ServiceError) in _ = try await client.removeRoots([.zero], from: name) }
                    == .storageDamaged)
            #expect(await code { () throws(ServiceError) in try await client.ping() } == .storageDamaged)
            #expect(
                await code { () throws(ServiceError) in _ = try await client.testRoots([.zero], in: name) }
                    == .storageDamaged)
            // Long enough for an attempt to open the storage again.
            try await Task.sleep(for: .milliseconds(1200))
        }
        #expect(!FileManager.default.fileExists(atPath: folder + "/data.mdb"))
        #expect(try await client.hello().version == 1)
    }
}
