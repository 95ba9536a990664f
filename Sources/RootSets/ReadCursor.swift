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
