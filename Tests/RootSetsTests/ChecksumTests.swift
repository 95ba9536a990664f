import Core
@testable import RootSets
import TestSupport
import Testing

@Suite("Checksums and seals")
struct ChecksumTests {
    private func checksum(_ bytes: [UInt8], seed: UInt64 = 1) -> UInt64 {
        bytes.withUnsafeBytes { Checksum.of($0, seed: seed) }
    }

    @Test("Each single bit, each shorter and longer value and each seed gives another checksum")
    func bits() {
        var random = SeededGenerator(seed: runSeed)
        for count in Array(0...140) + [4064] {
            let bytes = random.bytes(count)
            let right = checksum(bytes)
            #expect(right == checksum(bytes), "seed \(runSeed), \(count) bytes")
            var others: Set<UInt64> = [right, checksum(bytes, seed: 2), checksum(bytes + [0])]
            var expected = 3
            for bit in stride(from: 0, to: count * 8, by: count > 200 ? 37 : 1) {
                var changed = bytes
                changed[bit / 8] ^= 1 << UInt8(bit % 8)
                others.insert(checksum(changed))
                expected += 1
            }
            #expect(others.count == expected, "seed \(runSeed), \(count) bytes")
        }
    }

    @Test("Values that differ little have different checksums: numbers, zeros, swapped blocks")
    func structured() {
        var found: Set<UInt64> = []
        for number in 0..<50_000 as Range<UInt64> { found.insert(checksum(withUnsafeBytes(of: number) { Array($0) })) }
        for count in 0..<2000 { found.insert(checksum([UInt8](repeating: 0, count: count))) }
        // Eight zeros are the number 0.
        #expect(found.count == 50_000 + 2000 - 1)
        var random = SeededGenerator(seed: runSeed)
        let blocks = (0..<16).map { _ in random.bytes(16) }
        var orders: Set<UInt64> = [checksum(blocks.flatMap { $0 })]
        for first in 0..<16 {
            for second in (first + 1)..<16 {
                var swapped = blocks
                swapped.swapAt(first, second)
                orders.insert(checksum(swapped.flatMap { $0 }))
            }
        }
        #expect(orders.count == 1 + 16 * 15 / 2, "seed \(runSeed)")
    }

    @Test("A seal fits one database, one key, one version and one value")
    func seal() {
        var random = SeededGenerator(seed: runSeed)
        let health = StorageHealth()
        let records = Database(.records, handle: 0, DatabaseTrust(health))
        let log = Database(.log, handle: 0, DatabaseTrust(health))
        let key = Array("key".utf8)
        let contents = random.bytes(100)
        let seed = key.withUnsafeBytes { records.seed(of: $0) }
        let sealed = SealedValue.bytes(of: contents, version: 9, seed: seed).bytes
        func isGenuine(_ bytes: [UInt8], _ key: [UInt8], _ database: Database) -> Bool {
            bytes.withUnsafeBytes { bytes in
                key.withUnsafeBytes { key in database.genuine(bytes, at: key) != nil }
            }
        }
        #expect(isGenuine(sealed, key, records))
        #expect(!isGenuine(sealed, Array("kex".utf8), records))
        #expect(!isGenuine(sealed, key, log))
        for bit in 0..<sealed.count * 8 {
            var changed = sealed
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!isGenuine(changed, key, records), "seed \(runSeed), bit \(bit)")
        }
        for count in 0..<sealed.count { #expect(!isGenuine(Array(sealed.prefix(count)), key, records)) }
        let other = SealedValue.bytes(of: contents, version: 10, seed: seed).bytes
        #expect(isGenuine(other, key, records) && other.prefix(16) != sealed.prefix(16))
        #expect(!isGenuine(Array(other.prefix(8)) + sealed.dropFirst(8), key, records))
    }

    @Test("Whatever bytes are stored, reading them ends with a value or an error")
    func totalDecoding() throws {
        var random = SeededGenerator(seed: runSeed)
        let name = try name("deck")
        let roots = (0..<5).map { _ in random.digest() }.sorted()
        let record = PackedRecord.encode(name, .challenge, rootCount: 5, roots: roots)
        var logged: [UInt8] = []
        LogRecord.encode(Mutation(.addRoots(name, roots)), changed: 5, after: 7, into: &logged)
        var edit = Edit(name)
        edit.records = [RecordEdit([1], value: [2, 3])]
        edit.removedRanges = [RecordRange([1], [2])]
        var edited: [UInt8] = []
        LogRecord.encode(Mutation(.edit(edit)), changed: 0, after: 7, into: &edited)
        let samples = [
            PackedBucket.value(ofRecord: record, tag: 7), logged, edited, Totals().bytes,
            SetsVersion(sequence: 4).bytes,
        ]
        for round in 0..<40_000 {
            var bytes = samples[round % samples.count]
            if round % 3 == 0 { bytes = random.bytes(Int.random(in: 0...200, using: &random)) }
            for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count * 2, using: &random)))
            bytes.withRawBytes { bytes in decodeAll(bytes, name) }
        }
    }

    private func decodeAll(_ bytes: UnsafeRawBufferPointer, _ name: CollaborationIdentifier) {
        if let bucket = try? PackedBucket(bytes) {
            for index in 0..<bucket.count { _ = try? bucket.record(index) }
            _ = try? name.utf8.withRawBytes { name throws(StorageFailure) in try bucket.find(name, hash: 7) }
        }
        if let bucket = try? PackedBucket(checking: bytes) {
            _ = PackedBucket.value(of: [(bucket, 0..<bucket.count)])
        }
        _ = try? LogRecord.decode(bytes, sequence: 1)
        _ = try? LogRecord.request(in: bytes)
        _ = try? LogRecord.identifier(in: bytes)
        _ = try? LogRecord.previous(in: bytes)
        _ = try? Totals(reading: bytes)
        _ = try? Totals(readingFormat1: bytes)
        _ = try? SetsVersion(reading: bytes)
        _ = SealedValue(bytes)
    }
}
