import Foundation
import Platform
import TestSupport
import Testing

@testable import Server

@Suite("The file of the durable clock")
struct DurableClockTests {
    /// Nobody knows when a pipe has its bytes.
    @Test("A pipe in place of the file is refused, and nobody waits for it", .timeLimit(.minutes(1)))
    func pipe() throws {
        let scratch = ScratchDirectory()
        #expect(mkfifo(scratch.path + "/" + DurableClock.fileName, 0o600) == 0)
        #expect(throws: SystemFailure.self) { try DurableClock.storedTime(in: scratch.path) }
        #expect(throws: SystemFailure.self) {
            try DurableClock(dataDirectory: scratch.path, elapsed: .system, date: { Date() })
        }
    }
}
