import CLMDB
package import Core
import Foundation

// `records`: records of the layers above the gate. Key: chosen by the layer; keys are ordered by their bytes. Value:
// the sequence of the mutation that wrote it (8), then the layer's bytes.

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
        for range in edit.removedRanges { try removeRecords(range) }
        for record in edit.records where !record.isCheck {
            let key = record.isSequenced ? record.key + bigEndianBytes(sequence) : record.key
            precondition(!key.isEmpty && key.count <= Limits.recordKeyBytesMax, "a key has no byte or too many")
            if let value = record.value {
                try transaction.put(
                    environment.records, key, withUnsafeBytes(of: sequence.littleEndian) { Array($0) } + value)
            } else {
                try transaction.delete(environment.records, key)
            }
        }
    }

    private func recordVersion(at key: [UInt8]) throws(StorageFailure) -> UInt64? {
        guard let value = try transaction.get(environment.records, key) else { return nil }
        guard value.count >= 8 else { throw .damaged("a record is damaged") }
        return UInt64(littleEndian: value.loadUnaligned(as: UInt64.self))
    }

    private func removeRecords(_ range: RecordRange) throws(StorageFailure) {
        try transaction.withCursor(environment.records) { cursor throws(StorageFailure) in
            while true {
                var found = MDB_val()
                var value = MDB_val()
                let code = withMDBValue(range.firstKey) { wanted in
                    found = wanted.pointee
                    return mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE)
                }
                if code == MDB_NOTFOUND { return }
                try check(code, "removing records")
                let key = UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size)
                guard key.lexicographicallyPrecedes(range.end) else { return }
                try transaction.delete(environment.records, at: cursor)
            }
        }
    }
}

extension RecordRange {
    /// The first key that can be in the range. LMDB has no empty keys and refuses to search for one.
    fileprivate var firstKey: [UInt8] { start.isEmpty ? [0] : start }
}

extension Snapshot {
    /// Copies the record at `key`; `nil` when there is none.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func record(_ key: [UInt8]) throws(ServiceError) -> StoredRecord? {
        guard !key.isEmpty else { return nil }
        do throws(StorageFailure) {
            var value = MDB_val()
            let code = withMDBValue(key) { key in mdb_get(transaction.handle, environment.records, key, &value) }
            if code == MDB_NOTFOUND { return nil }
            try check(code, "reading a record")
            return try stored(key, value)
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
            var value = MDB_val()
            let code = withMDBValue(key) { key in mdb_get(transaction.handle, environment.records, key, &value) }
            if code == MDB_NOTFOUND { return nil }
            try check(code, "reading a record")
            let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
            guard bytes.count >= 8 else { throw .damaged("a record is damaged") }
            return body(
                UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)),
                UnsafeRawBufferPointer(rebasing: bytes[8...]))
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
        let owner = try RecordCursor(transaction, environment)
        let cursor = owner.handle
        var found = MDB_val()
        var value = MDB_val()
        var code = withMDBValue(range.firstKey) { wanted in
            found = wanted.pointee
            return mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE)
        }
        while code == MDB_SUCCESS {
            let key = UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size)
            let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
            guard bytes.count >= 8 else { throw .damaged("a record is damaged") }
            guard key.isBelow(range.end), body(key, UnsafeRawBufferPointer(rebasing: bytes[8...])) else { return }
            code = mdb_cursor_get(cursor, &found, &value, MDB_NEXT)
        }
        if code != MDB_NOTFOUND { try check(code, "reading records") }
    }

    private func walk(
        _ range: RecordRange, _ limit: Int, _ isDescending: Bool
    ) throws(StorageFailure) -> Page<StoredRecord> {
        var page = Page<StoredRecord>(items: [], hasMore: false)
        guard !range.end.isEmpty else { return page }
        let owner = try RecordCursor(transaction, environment)
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
        let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        guard bytes.count >= 8 else { throw .damaged("a record is damaged") }
        return StoredRecord(
            key: key, version: UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)), value: Array(bytes[8...]))
    }
}

/// Owns a cursor over `records` for reading.
private struct RecordCursor: ~Copyable {
    let handle: OpaquePointer

    init(_ transaction: ReadTransaction, _ environment: StorageEnvironment) throws(StorageFailure) {
        var handle: OpaquePointer?
        try check(mdb_cursor_open(transaction.handle, environment.records, &handle), "reading records")
        guard let handle else { throw StorageFailure(ENOMEM, "reading records") }
        self.handle = handle
    }

    deinit {
        mdb_cursor_close(handle)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes come before `other` in the order of keys.
    fileprivate func isBelow(_ other: [UInt8]) -> Bool {
        other.withUnsafeBytes { other in
            guard let ours = baseAddress, let theirs = other.baseAddress else { return count < other.count }
            let order = memcmp(ours, theirs, Swift.min(count, other.count))
            return order < 0 || (order == 0 && count < other.count)
        }
    }
}
