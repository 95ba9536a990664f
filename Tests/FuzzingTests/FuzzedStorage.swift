import Core

@testable import RootSets

/// Values of the storage: what damage on a disk, or somebody who writes to it, can make of them. The first byte says
/// which kind of value it is. Nothing here may end the process.
enum FuzzedStorage {
    static let subject = FuzzSubject("storage", bytesMax: 1024, seeds: seeds) { input in
        guard let first = input.first else { return }
        let value = UnsafeRawBufferPointer(rebasing: input[1...])
        do {
            switch first {
            case 0: try logRecord(value)
            case 1: try bucket(value)
            case 2: try totals(value)
            default: break
            }
        } catch is StorageFailure {}
    }

    private static func logRecord(_ value: UnsafeRawBufferPointer) throws {
        _ = (try LogRecord.changed(in: value), try LogRecord.request(in: value))
        let logged = try LogRecord.decode(value, sequence: 7)
        var bytes: [UInt8] = []
        LogRecord.encode(
            logged.mutation, changed: logged.changed, after: try LogRecord.previous(in: value), into: &bytes)
        let again = try bytes.withRawBytes { try LogRecord.decode($0, sequence: 7) }
        try demand(again == logged, "a record of the change log is read in another way when it is written again")
    }

    private static func bucket(_ value: UnsafeRawBufferPointer) throws {
        let bucket = try PackedBucket(value)
        let root = Digest([UInt8](repeating: 0xd2, count: 32)) ?? .zero
        for index in 0..<bucket.count {
            let record = try bucket.record(index)
            _ = (record.roots.contains(root), record.roots.contains(root, near: record.roots.count / 2))
            if !record.isLarge {
                try demand(record.roots.count == Int(record.rootCount), "a record has another number of roots")
            }
            let found = try bucket.find(record.identifier, hash: UInt64(bucket.tag(index)))
            try demand(found.map { $0 <= index } ?? false, "a record is not found")
        }
    }

    private static func totals(_ value: UnsafeRawBufferPointer) throws {
        let totals = try Totals(reading: value)
        _ = totals.logBytes
        try demand(totals.bytes.elementsEqual(value), "the totals are written in another way than they were read")
    }

    private static func seeds() throws -> [[UInt8]] {
        guard let deck = CollaborationIdentifier("deck-42") else { return [] }
        let root = Digest([UInt8](repeating: 0xd2, count: 32)) ?? .zero
        var edit = Edit(deck)
        edit.records = [RecordEdit([1], value: [2], expecting: .absent)]
        let changes: [Change] = [
            .createCollaboration(deck, .challenge), .dropCollaboration(deck), .addRoots(deck, [root]),
            .removeRoots(deck, [.zero, root]), .edit(edit),
        ]
        let records = changes.map { change in
            var bytes: [UInt8] = []
            LogRecord.encode(Mutation(identifier: MutationIdentifier(5), change), changed: 1, after: 6, into: &bytes)
            return [0] + bytes
        }
        let packed = PackedRecord.encode(deck, .challenge, rootCount: 2, roots: [.zero, root])
        let large = PackedRecord.encode(deck, .deviceNonce(windowSeconds: 60), rootCount: 900, roots: nil)
        let buckets = [packed, large].map { [1] + PackedBucket.value(ofRecord: $0, tag: 9) }
        var totals = Totals()
        totals.sequence = 4
        return records + buckets + [[2] + totals.bytes]
    }
}
