import CLMDB
package import Core
import Foundation

// `records`: records of the layers above the gate. Key: chosen by the layer; keys are ordered by their bytes. Contents:
// the layer's bytes. A record's version is that of its seal.

extension Applier {
    /// Checks whether an edit's records can be written now. Returns the error that refuses them; `nil` when they can.
    func refusal(of edit: Edit) throws(StorageFailure) -> ServiceError? {
        guard edit.records.count <= Limits.recordsPerEditMax, edit.removedRanges.count <= Limits.rangesPerEditMax else {
            return ServiceError(
                .limitExceeded, detail: UInt32(Limits.recordsPerEditMax), "an edit has too many records")
        }
        let bounds = edit.removedRanges.flatMap { [$0.start, $0.end] }
        guard edit.weight <= Limits.editBytesMax, bounds.allSatisfy({ $0.count <= Limits.recordKeyBytesMax }) else {
            return ServiceError(.limitExceeded, detail: UInt32(Limits.editBytesMax), "an edit is too long")
        }
        for record in edit.records {
            let keyBytes = record.key.count + (record.isSequenced ? 8 : 0)
            guard keyBytes > 0, keyBytes <= Limits.recordKeyBytesMax,
                record.value.map({ $0.count <= Limits.recordValueBytesMax }) ?? true
            else {
                return ServiceError(.limitExceeded, detail: UInt32(Limits.recordValueBytesMax), "a record is too long")
            }
            guard record.expectation != .anything else { continue }
            let present = try recordVersion(at: record.key)
            let isAsExpected =
                switch record.expectation {
                case .anything: true
                case .absent: present == nil
                case .present: present != nil
                case .version(let version): present == version
                }
            guard isAsExpected else {
                return ServiceError(.staleEdit, "a record has changed since it was read: read it again")
            }
        }
        return nil
    }

    /// Removes and writes an edit's records. `sequence` is that of the edit.
    func writeRecords(of edit: Edit, sequence: UInt64) throws(StorageFailure) {
        precondition(sequence == self.sequence + 1, "records are written with the version of another mutation")
        precondition(edit.records.count <= Limits.recordsPerEditMax, "an edit was not checked before it is written")
        for range in edit.removedRanges { try transaction.deleteRecords(environment.records, range) }
        for record in edit.records where !record.isCheck {
            let key = record.key(in: sequence)
            precondition(!key.isEmpty && key.count <= Limits.recordKeyBytesMax, "a key has no byte or too many")
            if let value = record.value {
                try transaction.put(environment.records, key, value, version: sequence)
            } else {
                try transaction.delete(environment.records, key)
            }
        }
    }

    private func recordVersion(at key: [UInt8]) throws(StorageFailure) -> UInt64? {
        try transaction.get(environment.records, key)?.version
    }
}

extension WriteTransaction {
    /// Deletes the records of a range; if `version` is given, those with a lower version.
    ///
    /// Throws `damaged` when one of them is not what was written.
    func deleteRecords(
        _ records: Database, _ range: RecordRange, before version: UInt64 = .max
    ) throws(StorageFailure) {
        try withCursor(records) { cursor throws(StorageFailure) in
            var next = range.firstKey
            while true {
                var found = MDB_val()
                var value = MDB_val()
                let code = withMDBValue(next) { wanted in
                    found = wanted.pointee
                    return mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE)
                }
                if code == MDB_NOTFOUND { return }
                try check(code, "removing records")
                let key = UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size)
                guard key.lexicographicallyPrecedes(range.end) else { return }
                // A damaged tree could lead to another entry for ever.
                guard !key.lexicographicallyPrecedes(next) else {
                    throw .damaged("the records are not in ascending order")
                }
                let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
                if version < .max, try records.open(bytes, at: key).version >= version {
                    next = Array(key) + [0]
                } else {
                    try delete(records, at: cursor)
                }
            }
        }
    }
}

extension RecordEdit {
    /// The key that the record has when the mutation with that sequence writes it.
    func key(in sequence: UInt64) -> [UInt8] { isSequenced ? key + bigEndianBytes(sequence) : key }
}

extension RecordRange {
    /// The first key that can be in the range. LMDB has no empty keys and refuses to search for one.
    var firstKey: [UInt8] { start.isEmpty ? [0] : start }
}

extension Snapshot {
    /// Copies the record at `key`; `nil` when there is none.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func record(_ key: [UInt8]) throws(ServiceError) -> StoredRecord? {
        guard !key.isEmpty else { return nil }
        do throws(StorageFailure) {
            guard let value = try transaction.value(environment.records, key) else { return nil }
            return StoredRecord(key: key, version: value.version, value: Array(value.contents))
        } catch {
            throw error.asServiceError
        }
    }

    /// Calls `body` with the version and the value of the record at `key`, without copying them. They must not be used
    /// after the call. Returns `nil` when there is no record.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func withRecord<R>(
        _ key: UnsafeRawBufferPointer, _ body: (_ version: UInt64, _ value: UnsafeRawBufferPointer) -> R
    ) throws(ServiceError) -> R? {
        do throws(StorageFailure) {
            guard !key.isEmpty else { return nil }
            guard let value = try transaction.value(environment.records, key) else { return nil }
            return body(value.version, value.contents)
        } catch {
            throw error.asServiceError
        }
    }

    /// Copies up to `limit` records of a range; from its end backwards when `isDescending`.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func records(
        in range: RecordRange, limit: Int, isDescending: Bool = false
    ) throws(ServiceError) -> Page<StoredRecord> {
        do throws(StorageFailure) {
            return try walk(range, limit, isDescending)
        } catch {
            throw error.asServiceError
        }
    }

    /// Calls `body` with key and value of every record of a range, in order, until it returns false. Nothing is copied:
    /// key and value must not be used after the call.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func visitRecords(
        in range: RecordRange, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    ) throws(ServiceError) {
        do throws(StorageFailure) {
            try visit(range, body)
        } catch {
            throw error.asServiceError
        }
    }

    private func visit(
        _ range: RecordRange, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
    ) throws(StorageFailure) {
        try environment.records.checkTrust()
        let owner = try ReadCursor(transaction, environment.records)
        let cursor = owner.handle
        var found = MDB_val()
        var value = MDB_val()
        var code = withMDBValue(range.firstKey) { wanted in
            found = wanted.pointee
            return mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE)
        }
        var last: UnsafeRawBufferPointer?
        while code == MDB_SUCCESS {
            let key = UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size)
            // Also ends a walk that a damaged tree would lead in a circle.
            if let last, !last.isBelow(key) { throw .damaged("the records are not in ascending order") }
            last = key
            guard key.isBelow(range.end) else { return }
            let record = try environment.records.open(
                UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size), at: key)
            guard body(key, record.contents) else { return }
            code = mdb_cursor_get(cursor, &found, &value, MDB_NEXT)
        }
        if code != MDB_NOTFOUND { try check(code, "reading records") }
    }

    private func walk(
        _ range: RecordRange, _ limit: Int, _ isDescending: Bool
    ) throws(StorageFailure) -> Page<StoredRecord> {
        var page = Page<StoredRecord>(items: [], hasMore: false)
        guard !range.end.isEmpty else { return page }
        try environment.records.checkTrust()
        let owner = try ReadCursor(transaction, environment.records)
        let cursor = owner.handle
        var found = MDB_val()
        var value = MDB_val()
        var code = withMDBValue(isDescending ? range.end : range.firstKey) { wanted in
            found = wanted.pointee
            return mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE)
        }
        if isDescending {
            // The cursor is at the first record that is not before the end, or at no record. The record before it is
            // the range's last.
            code =
                code == MDB_NOTFOUND
                ? mdb_cursor_get(cursor, &found, &value, MDB_LAST) : mdb_cursor_get(cursor, &found, &value, MDB_PREV)
        }
        while code == MDB_SUCCESS {
            let key = Array(UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size))
            let isInside =
                isDescending
                ? !key.lexicographicallyPrecedes(range.start) : key.lexicographicallyPrecedes(range.end)
            guard isInside else { return page }
            // Also ends a walk that a damaged tree would lead in a circle.
            if let last = page.items.last?.key,
                isDescending ? !key.lexicographicallyPrecedes(last) : !last.lexicographicallyPrecedes(key)
            {
                throw .damaged("the records are not in ascending order")
            }
            guard page.items.count < limit else {
                page.hasMore = true
                return page
            }
            page.items.append(try stored(key, value))
            code = mdb_cursor_get(cursor, &found, &value, isDescending ? MDB_PREV : MDB_NEXT)
        }
        if code != MDB_NOTFOUND { try check(code, "reading records") }
        return page
    }

    private func stored(_ key: [UInt8], _ value: MDB_val) throws(StorageFailure) -> StoredRecord {
        let record = try key.withRawBytes { bytes throws(StorageFailure) in
            try environment.records.open(
                UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size), at: bytes)
        }
        return StoredRecord(key: key, version: record.version, value: Array(record.contents))
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes come before `other` in the order of keys.
    fileprivate func isBelow(_ other: [UInt8]) -> Bool { other.withUnsafeBytes { isBelow($0) } }

    /// Whether these bytes come before `other` in the order of keys.
    func isBelow(_ other: UnsafeRawBufferPointer) -> Bool {
        guard let ours = baseAddress, let theirs = other.baseAddress else { return count < other.count }
        let order = memcmp(ours, theirs, Swift.min(count, other.count))
        return order < 0 || (order == 0 && count < other.count)
    }
}
