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

    /// The service's sandbox is that of every start: opening the storage again needs nothing that it takes away.
    @Test(
        "After a reader met a file that was cut, it refuses until the file is whole, and then answers again by itself")
    func reopening() async throws {
        let process = try ServiceProcess()
        let client = try process.client()
        let name = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(name, policy: .challenge)
        try await client.addRoots([.zero], to: name)
        let path = process.dataDirectory + "/data.mdb"
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        try #require(truncate(path, 4096) == 0)
        func isMember() async -> Result<[Bool], ServiceError> {
            do throws(ServiceError) {
                return .success(try await client.testRoots([.zero], in: name))
            } catch {
                return .failure(error)
            }
        }
        guard case .failure(let error) = await isMember() else {
            Issue.record("an answer was read from a file that is gone")
            return
        }
        #expect(error.code == .storageDamaged)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.write(contentsOf: whole)
        try file.close()
        let deadline = ContinuousClock.now + .seconds(20)
        var answer = await isMember()
        while case .failure = answer, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(50))
            answer = await isMember()
        }
        #expect(try answer.get() == [true])
        try await client.ping()
        #expect(try await client.addRoots([.zero], to: name).changed == 0)
        #expect(process.terminate(within: 20))
    }
}
