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

    @Test("Totals come back as they were written, and an empty log takes nothing")
    func roundTrip() throws {
        let read = try totals([7, 8, 0, 2, 3])
        #expect(read.logBytes == 0)
        #expect(
            read.bytes
                == [7, 8, 0, 2, 3].flatMap { (word: UInt64) in withUnsafeBytes(of: word.littleEndian) { Array($0) } })
        #expect(try totals([9, 8, 500, 2, 3]).logBytes == 500 + 2 * LogRecord.overheadBytes)
    }

    @Test(
        "Totals that can't be are damaged, not a crash",
        arguments: [
            [UInt64.max, 1, 0, 0, 0], [.max, .max, 0, 0, 0], [1 << 56, 1, 0, 0, 0], [5, 0, 0, 0, 0], [5, 7, 0, 0, 0],
            [5, .max, 0, 0, 0], [5, 1, .max, 0, 0], [5, 1, 0, 0], [],
        ])
    func damaged(words: [UInt64]) throws {
        #expect(throws: StorageFailure.self) { try totals(words) }
    }
}
