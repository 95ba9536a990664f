import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// A storage whose file can't grow, and whose free pages have next to no neighbours. It has documents, which are many
/// records whose keys begin with the same byte, with a page for each. Pages of the documents that may be removed, of
/// one that stays and of one that was removed follow each other in the file, so that no more than two neighbouring
/// pages are free when one of them goes.
final class ScatteredStorage {
    static let documents: [UInt8] = [1, 2]
    static let records = 2040
    /// The document with the long records.
    private static let long: UInt8 = 0
    private static let pages = 50 << 8
    /// Pages of each value of the list reserve.
    static let reservePages = ListReserve.wanted(used: pages, capacity: pages)

    let storage: Storage

    /// `parts`: the values of the list reserve that it has. `log`: the log that it shares.
    /// `longRecords`: how many records there are that need four neighbouring pages each.
    init(
        _ parts: [ListReserve.Part] = ListReserve.lasting, sharing log: MemoryLog? = nil, longRecords: Int = 0
    ) throws {
        storage = try Storage(log?.found() ?? StorageSurroundings(), sharing: log) {
            ($0.sizeLimitBytes, $0.reserveBytes, $0.logRetentionBytes) = (49 << 20, 1 << 20, 1 << 20)
        }
        // A storage that shares a log takes no change before it has read that.
        for _ in 0..<30_000 where log != nil {
            if try storage.sets.sharing?.segment == 1 { break }
            usleep(1000)
        }
        _ = try storage.create("decks")
        let (staying, removed): (UInt8, UInt8) = (3, 4)
        try change { commit in
            try commit { transaction, environment in
                let reserve = ListReserve(transaction, environment)
                for part in parts { try reserve.take(ScatteredStorage.reservePages, for: part) }
                for record in 0..<longRecords {
                    try transaction.put(
                        environment.records, ScatteredStorage.key(ScatteredStorage.long, record),
                        ScatteredStorage.longValue(5), version: 1)
                }
            }
            try eachPart { numbers in
                try commit { transaction, environment in
                    for number in numbers {
                        for document in ScatteredStorage.documents {
                            for next in [removed, document, staying] {
                                let key = ScatteredStorage.key(
                                    next, next == document ? number : 2 * number + Int(document))
                                try transaction.put(
                                    environment.records, key, [UInt8](repeating: next, count: 3000), version: 1)
                            }
                        }
                    }
                }
            }
            try fill(leaving: 40, commit)
            try eachPart { numbers in
                try commit { transaction, environment in
                    for number in numbers {
                        for document in ScatteredStorage.documents {
                            let key = ScatteredStorage.key(removed, 2 * number + Int(document))
                            try transaction.delete(environment.records, key)
                        }
                    }
                }
            }
            for _ in 0..<4 { try fill(leaving: 4, commit) }
        }
    }

    private func eachPart(_ body: (Range<Int>) throws -> Void) rethrows {
        for first in stride(from: 0, to: ScatteredStorage.records, by: 60) { try body(first..<first + 60) }
    }

    /// Writes a record that has all the pages at the end of the file but some.
    private func fill(leaving few: Int, _ commit: Commit) throws {
        try commit { transaction, environment in
            let left = ScatteredStorage.pages - environment.fileSize / environment.pageBytes - few
            guard left > 0 else { return }
            let value = [UInt8](repeating: 9, count: (left << 12) - 100)
            try transaction.put(
                environment.records, ScatteredStorage.key(9, transaction.number), value, version: 1)
        }
    }

    private static func key(_ document: UInt8, _ record: Int) -> [UInt8] {
        [document] + withUnsafeBytes(of: UInt16(record).bigEndian) { Array($0) }
    }

    /// The replacement of a long record by one that has as many pages.
    static func replacement(_ record: Int) -> Change {
        var edit = Edit()
        edit.records = [RecordEdit(key(long, record), value: longValue(7), expecting: .present)]
        return .edit(edit)
    }

    private static func longValue(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 4 * 4096 - 64) }

    /// The removal of a document's records.
    static func removal(_ document: UInt8) -> Change {
        var edit = Edit()
        edit.removedRanges = [RecordRange([document], [document + 1])]
        return .edit(edit)
    }

    /// How many records a document has.
    func records(_ document: UInt8) throws -> Int {
        try storage.sets.read { snapshot throws(ServiceError) in
            try snapshot.records(in: RecordRange([document], [document + 1]), limit: 10_000).items.count
        }
    }

    typealias Commit = ((WriteTransaction, StorageEnvironment) throws -> Void) throws -> Void

    /// Lets `body` make commits while the storage is closed. Opens it again.
    func change(_ body: (Commit) throws -> Void) throws {
        storage.close()
        try {
            let environment = try StorageEnvironment(
                directory: storage.directory, bytesMax: ScatteredStorage.pages << 12, reserveBytes: 1 << 20)
            try body { changes in
                let transaction = try WriteTransaction(in: environment)
                try changes(transaction, environment)
                try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
                try transaction.commit()
            }
        }()
        try storage.reopen()
    }
}

extension Storage {
    /// The pages of the values of the list reserve, in the order of `ListReserve.Part`. Opens the storage anew.
    func listReserve() throws -> [Int] {
        close()
        let pages = try {
            let environment = try StorageEnvironment(directory: directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
            let present = try environment.listReserve()
            return ListReserve.Part.allCases.map { present[$0, default: 0] }
        }()
        try reopen()
        return pages
    }
}
