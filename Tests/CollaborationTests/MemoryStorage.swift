import Collaboration
import Core

/// Records and root sets in memory, after the contracts of `Edit`, `RecordEdit` and `RecordReader` alone: shares no
/// code with the storage.
final class MemoryStorage: RecordReader {
    private(set) var records: [[UInt8]: StoredRecord] = [:]
    /// The records' keys, ascending.
    private var keys: [[UInt8]] = []
    private(set) var sets: [CollaborationIdentifier: Set<Digest>] = [:]
    private(set) var sequence: UInt64 = 0

    func record(_ key: [UInt8]) throws(ServiceError) -> StoredRecord? { records[key] }

    func records(in range: RecordRange, limit: Int, isDescending: Bool) throws(ServiceError) -> Page<StoredRecord> {
        var found = sorted(range)
        if isDescending { found.reverse() }
        return Page(items: Array(found.prefix(limit)), hasMore: found.count > limit)
    }

    func visitRecords(
        in range: RecordRange, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    ) throws(ServiceError) {
        for record in sorted(range) {
            let goesOn = record.key.withUnsafeBytes { key in record.value.withUnsafeBytes { body(key, $0) } }
            guard goesOn else { return }
        }
    }

    func hasSet(of collaboration: CollaborationIdentifier) throws(ServiceError) -> Bool { sets[collaboration] != nil }

    func isInSet(
        _ person: PersonIdentity, of collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Bool {
        sets[collaboration]?.contains(person.rootHash) ?? false
    }

    func lastSequence() throws(ServiceError) -> UInt64 { sequence }

    private func sorted(_ range: RecordRange) -> [StoredRecord] {
        let (start, end) = (place(of: range.start), place(of: range.end))
        return start < end ? keys[start..<end].compactMap { records[$0] } : []
    }

    /// How many keys are before `key`.
    private func place(of key: [UInt8]) -> Int {
        var (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if keys[middle].lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Puts a record back that an ending would have left.
    func keep(_ record: StoredRecord) { set(record.key, record) }

    private func set(_ key: [UInt8], _ record: StoredRecord?) {
        if (record == nil) != (records[key] == nil) {
            if record == nil { keys.remove(at: place(of: key)) } else { keys.insert(key, at: place(of: key)) }
        }
        records[key] = record
    }

    /// Applies the edit whole.
    ///
    /// Throws `staleEdit`, `unknownCollaboration` or `limitExceeded`, and then nothing has changed.
    func apply(_ edit: Edit) throws(ServiceError) -> MutationReceipt {
        guard edit.records.count <= Limits.recordsPerEditMax, edit.removedRanges.count <= Limits.rangesPerEditMax,
            edit.weight <= Limits.editBytesMax
        else { throw ServiceError(.limitExceeded, "the edit is too long") }
        for record in edit.records {
            let present = records[record.key]?.version
            let holds =
                switch record.expectation {
                case .anything: true
                case .absent: present == nil
                case .present: present != nil
                case .version(let version): present == version
                }
            guard holds else { throw ServiceError(.staleEdit, "the edit is stale") }
            guard !record.key.isEmpty, record.key.count + (record.isSequenced ? 8 : 0) <= Limits.recordKeyBytesMax,
                record.value?.count ?? 0 <= Limits.recordValueBytesMax
            else { throw ServiceError(.limitExceeded, "a record is too long") }
        }
        let changed = try applySets(edit)
        sequence += 1
        for range in edit.removedRanges {
            for record in sorted(range) { set(record.key, nil) }
        }
        for record in edit.records where !record.isCheck {
            let tail = (0..<8).map { UInt8(truncatingIfNeeded: sequence >> (56 - 8 * UInt64($0))) }
            let key = record.isSequenced ? record.key + tail : record.key
            set(key, record.value.map { StoredRecord(key: key, version: sequence, value: $0) })
        }
        return MutationReceipt(sequence: sequence, changed: changed, isRepeat: false)
    }

    private func applySets(_ edit: Edit) throws(ServiceError) -> UInt64 {
        guard let collaboration = edit.collaboration else { return 0 }
        guard var roots = sets[collaboration] ?? (edit.creation == nil ? nil : []) else {
            throw ServiceError(.unknownCollaboration, "there is no such set")
        }
        var changed = sets[collaboration] == nil ? 1 : 0
        for root in edit.removedRoots where roots.remove(root) != nil { changed += 1 }
        for root in edit.addedRoots where roots.insert(root).inserted { changed += 1 }
        sets[collaboration] = edit.dropsCollaboration ? nil : roots
        return UInt64(changed + (edit.dropsCollaboration ? 1 : 0))
    }
}
