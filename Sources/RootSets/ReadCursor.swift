import CLMDB
import Foundation

/// Owns a cursor of a read transaction over one database.
struct ReadCursor: ~Copyable {
    let handle: OpaquePointer

    init(_ transaction: ReadTransaction, _ database: Database) throws(StorageFailure) {
        try self.init(transaction, handle: database.handle)
    }

    /// `handle`: LMDB's number of the database; 0 is the list of free pages.
    init(_ transaction: ReadTransaction, handle database: UInt32) throws(StorageFailure) {
        var handle: OpaquePointer?
        try check(mdb_cursor_open(transaction.handle, database, &handle), "reading")
        guard let handle else { throw StorageFailure(ENOMEM, "reading") }
        self.handle = handle
    }

    deinit {
        mdb_cursor_close(handle)
    }
}

extension ReadTransaction {
    /// Calls `body` with each entry of a database as it stands in the file, in the order of the keys.
    ///
    /// Throws what `body` throws, and `damaged` when the entries are not in the order of their keys.
    func visitEntries(
        of database: Database,
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        let cursor = try ReadCursor(self, database)
        var key = MDB_val()
        var value = MDB_val()
        var last: UnsafeRawBufferPointer?
        var code = mdb_cursor_get(cursor.handle, &key, &value, MDB_FIRST)
        while code == MDB_SUCCESS {
            let keyBytes = UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size)
            let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
            guard environment.holds(keyBytes), environment.holds(bytes) else {
                throw .damaged("an entry of the database \(database.name) is outside of the file")
            }
            // Also ends where a damaged tree would lead in a circle.
            if let last, !database.isAscending(last, keyBytes) {
                throw .damaged("\(database.shown(keyBytes)) is not in its place")
            }
            last = keyBytes
            try body(keyBytes, bytes)
            code = mdb_cursor_get(cursor.handle, &key, &value, MDB_NEXT)
        }
        if code != MDB_NOTFOUND { try check(code, "reading") }
    }
}
