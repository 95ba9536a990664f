import Core
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import RootSets

@Suite("Opening the storage again")
struct ReopeningTests {
    @Test("It waits for the last reader, opens at most once in each pause, and pauses longer each time")
    func pacing() throws {
        let scratch = ScratchDirectory()
        let attempts = Atomic<Int>(0)
        let lines = Lock<[String]>([])
        let log = Log { line in lines.withLock { $0.append("\(line)") } }
        var held: StorageEnvironment? = try StorageEnvironment(
            directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 1 << 20,
            health: StorageHealth(log: log))
        let storage = ReadTransactionPool(try #require(held))
        let reopening = Reopening(storage, log: log) { () throws(ServiceError) in
            guard attempts.add(1, ordering: .relaxed).newValue > 1 else {
                throw ServiceError(.storageDamaged, "for a test")
            }
            return try StorageEnvironment(directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 1 << 20)
        }
        func pause() -> Double? { reopening.attempt() }
        storage.health.report(.failed, "a fault")
        // A reader that holds the environment keeps it open: two of them must not be open at one time.
        #expect(pause() == 1)
        #expect(attempts.load(ordering: .relaxed) == 0 && storage.health.hasFailed)
        held = nil
        for _ in 0..<10 { #expect(try #require(pause()) <= 1) }
        #expect(attempts.load(ordering: .relaxed) == 0)
        usleep(1_050_000)
        #expect(pause() == 2)
        for _ in 0..<10 { #expect(try #require(pause()) <= 2) }
        #expect(attempts.load(ordering: .relaxed) == 1)
        usleep(2_050_000)
        #expect(pause() == nil)
        #expect(attempts.load(ordering: .relaxed) == 2 && !storage.health.hasFailed)
        #expect(throws: Never.self) { _ = try storage.environment() }
        let critical = lines.withLock { $0.filter { $0.contains("can't be opened again") } }
        #expect(critical.count == 2 && critical.last?.contains("for a test") == true, "\(critical)")
    }
}
