import Core
@testable import RootSets
import TestSupport
import Testing

@Suite("Totals")
struct TotalsTests {
    private func totals(_ words: [UInt64]) throws -> Totals {
        try words.flatMap { word in withUnsafeBytes(of: word.littleEndian) { Array($0) } }
            .withRawBytes { bytes throws(StorageFailure) in try Totals(reading: bytes) }
    }

    /// The chain and the tallies.
    private static let rest = (1...15).map { UInt64($0) << 60 }

    @Test("Totals come back as they were written, and an empty log takes nothing")
    func roundTrip() throws {
        let words = [7, 8, 0, 2, 3] + TotalsTests.rest
        let read = try totals(words)
        #expect(read.logBytes == 0)
        #expect(
            read.bytes == words.flatMap { (word: UInt64) in withUnsafeBytes(of: word.littleEndian) { Array($0) } })
        #expect(try totals([9, 8, 500, 2, 3] + TotalsTests.rest).logBytes == 500 + 2 * LogRecord.overheadBytes)
    }

    @Test(
        "Totals that can't be are damaged, not a crash",
        arguments: [
            [UInt64.max, 1, 0, 0, 0], [.max, .max, 0, 0, 0], [1 << 56, 1, 0, 0, 0], [5, 0, 0, 0, 0], [5, 7, 0, 0, 0],
            [5, .max, 0, 0, 0], [5, 1, .max, 0, 0], [5, 1, 0, 0], [5, 1, 0, 0, 0, 0], [],
        ])
    func damaged(words: [UInt64]) throws {
        #expect(throws: StorageFailure.self) { try totals(words + TotalsTests.rest) }
        #expect(throws: StorageFailure.self) { try totals(words) }
    }
}
