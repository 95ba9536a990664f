import Core
import RootSets
import TestSupport

/// Records as documents have them: many records whose keys begin alike, anywhere among others. What a storage should
/// have of them.
struct StoredDocuments {
    /// How many records each document has.
    private(set) var counts: [UInt16: Int] = [:]
    static let documentsMax = 12
    /// An edit may have 1 MiB.
    private static let recordsPerEdit = 500

    private static func key(_ document: UInt16, _ record: UInt32) -> [UInt8] {
        withUnsafeBytes(of: document.bigEndian) { Array($0) } + withUnsafeBytes(of: record.bigEndian) { Array($0) }
    }

    private static func range(of document: UInt16) -> RecordRange {
        RecordRange(key(document, 0), key(document, .max))
    }

    /// An edit that adds records to a document, and how many.
    func addition(_ random: inout SeededGenerator) -> (edit: Edit, document: UInt16, count: Int) {
        let document = UInt16.random(in: 0..<UInt16(StoredDocuments.documentsMax), using: &random)
        let count = Int.random(in: 1...StoredDocuments.recordsPerEdit, using: &random)
        let present = counts[document] ?? 0
        var edit = Edit()
        for record in present..<present + count {
            let count = Int.random(in: 8...1900, using: &random)
            let value = [UInt8](repeating: UInt8(truncatingIfNeeded: record), count: count)
            edit.records.append(RecordEdit(StoredDocuments.key(document, UInt32(record)), value: value))
        }
        return (edit, document, count)
    }

    /// An edit that replaces some records of a document by longer ones; `nil` when there is no document.
    func replacement(_ random: inout SeededGenerator) -> Edit? {
        guard let document = counts.keys.sorted().randomElement(using: &random), let count = counts[document] else {
            return nil
        }
        var edit = Edit()
        for record in Set(
            (0..<Int.random(in: 1...8, using: &random)).map { _ in Int.random(in: 0..<count, using: &random) })
        {
            let value = [UInt8](repeating: 7, count: 1 << Int.random(in: 11...16, using: &random))
            edit.records.append(
                RecordEdit(StoredDocuments.key(document, UInt32(record)), value: value, expecting: .present))
        }
        return edit
    }

    mutating func add(_ count: Int, to document: UInt16) { counts[document, default: 0] += count }

    /// An edit that removes all records of some documents, also of ones that are not there.
    func removal(_ random: inout SeededGenerator) -> (edit: Edit, documents: [UInt16]) {
        let most = Int.random(in: 1...6, using: &random)
        let documents = counts.keys.sorted().shuffled(using: &random).prefix(most)
        var edit = Edit()
        edit.removedRanges = documents.map { StoredDocuments.range(of: $0) } + [StoredDocuments.range(of: .max)]
        return (edit, Array(documents))
    }

    mutating func remove(_ documents: [UInt16]) {
        for document in documents { counts[document] = nil }
    }

    /// What is wrong in a storage; `nil` when nothing is.
    func fault(in storage: RootSets) throws(ServiceError) -> String? {
        for document in UInt16(0)..<UInt16(StoredDocuments.documentsMax) {
            let range = StoredDocuments.range(of: document)
            let found = try storage.read { snapshot throws(ServiceError) in
                var found = 0
                var start = range.start
                while true {
                    let page = try snapshot.records(in: RecordRange(start, range.end), limit: 1000)
                    found += page.items.count
                    guard page.hasMore, let last = page.items.last else { return found }
                    start = last.key + [0]
                }
            }
            let expected = counts[document] ?? 0
            if found != expected { return "document \(document) has \(found) records, not \(expected)" }
        }
        return nil
    }
}
