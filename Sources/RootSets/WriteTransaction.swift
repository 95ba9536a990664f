import CLMDB
import Core
import Foundation

/// A write transaction. `deinit` aborts it unless it was committed. Only the thread that began it may call it, as LMDB
/// demands; this is asserted.
final class WriteTransaction {
    private(set) var handle: OpaquePointer?
    /// What commits are noted in; `nil` in a transaction that notes none.
    private let environment: StorageEnvironment?
    /// Is told of each record that is written.
    private let watch: WriterWatch?
    private let thread = ThreadConfinement()
    private let guarded = StorageGuard()
    /// Cursors that were used before, by database. LMDB closes them with the transaction.
    private var cursors: [MDB_dbi: OpaquePointer] = [:]
    /// Databases that this transaction has written to. They are so few that a search of the list is quick.
    private(set) var written: [MDB_dbi] = []

    /// Begins a transaction whose commit is not noted.
    init(_ handle: OpaquePointer) throws(StorageFailure) {
        environment = nil
        watch = nil
        try check(mdb_txn_begin(handle, nil, 0, &self.handle), "beginning a write")
        thread.bind()
    }

    init(in environment: StorageEnvironment, _ watch: WriterWatch? = nil) throws(StorageFailure) {
        self.environment = environment
        self.watch = watch
        try check(mdb_txn_begin(environment.handle, nil, 0, &handle), "beginning a write")
        thread.bind()
    }

    deinit {
        // If `init` threw, the transaction never began.
        thread.assertIsCurrentOrUnbound()
        // After a fault LMDB's lists are in an unknown state.
        if let handle, !guarded.hasFault { mdb_txn_abort(handle) }
    }

    /// The number of the transaction: one more than that of the commit before.
    var number: Int { handle.map { Int(mdb_txn_id($0)) } ?? 0 }

    /// Makes all writes durable. The transaction has ended afterwards, even when this throws.
    func commit() throws(StorageFailure) {
        thread.assertIsCurrent()
        guard handle != nil else { throw StorageFailure(MDB_BAD_TXN, "committing") }
        let number = number
        if let environment, !written.isEmpty {
            try put(
                environment.meta, StorageEnvironment.commitKey, StorageEnvironment.record(ofCommit: number))
            // What was read of a page that can't be read must not be written.
            if let fault = environment.fault ?? environment.displacement { throw fault }
        }
        guard let handle else { throw StorageFailure(MDB_BAD_TXN, "committing") }
        self.handle = nil
        try check(mdb_txn_commit(handle), "committing")
        environment?.note(commit: number)
    }

    private func noteWrite(to database: MDB_dbi) {
        watch?.proceed()
        if !written.contains(database) { written.append(database) }
    }

    /// Reads the value of `key`, borrowed until the next write; `nil` when there is none.
    func get(_ database: MDB_dbi, _ key: [UInt8]) throws(StorageFailure) -> UnsafeRawBufferPointer? {
        var value = MDB_val()
        let code = withMDBValue(key) { key in mdb_get(handle, database, key, &value) }
        if code == MDB_NOTFOUND { return nil }
        try check(code, "reading")
        return UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
    }

    func put(_ database: MDB_dbi, _ key: [UInt8], _ value: [UInt8], appending: Bool = false) throws(StorageFailure) {
        thread.assertIsCurrent()
        precondition(handle != nil, "a write was attempted after the commit")
        let flags = appending ? UInt32(MDB_APPEND) : 0
        noteWrite(to: database)
        let code = withMDBValue(key) { key in
            withMDBValue(value) { value in mdb_put(handle, database, key, value, flags) }
        }
        try check(code, "writing")
    }

    /// Deletes a key. Returns whether there was such a key.
    @discardableResult
    func delete(_ database: MDB_dbi, _ key: [UInt8]) throws(StorageFailure) -> Bool {
        thread.assertIsCurrent()
        precondition(handle != nil, "a write was attempted after the commit")
        noteWrite(to: database)
        let code = withMDBValue(key) { key in mdb_del(handle, database, key, nil) }
        if code == MDB_NOTFOUND { return false }
        try check(code, "deleting")
        return true
    }

    /// Deletes the record at `cursor`, which must be a cursor over `database`.
    func delete(_ database: MDB_dbi, at cursor: OpaquePointer) throws(StorageFailure) {
        thread.assertIsCurrent()
        assert(cursors[database] == cursor, "a cursor is of another database or transaction")
        noteWrite(to: database)
        try check(mdb_cursor_del(cursor, 0), "deleting")
    }

    /// Calls `body` with a cursor over `database`, whose position is undefined. The cursor is for reading and for
    /// `delete(_:at:)`.
    func withCursor<R>(
        _ database: MDB_dbi, _ body: (OpaquePointer) throws(StorageFailure) -> R
    ) throws(StorageFailure) -> R {
        thread.assertIsCurrent()
        precondition(handle != nil, "a read was attempted after the commit")
        if let cursor = cursors[database] { return try body(cursor) }
        var cursor: OpaquePointer?
        try check(mdb_cursor_open(handle, database, &cursor), "reading")
        guard let cursor else { throw StorageFailure(ENOMEM, "reading") }
        cursors[database] = cursor
        return try body(cursor)
    }
}

/// Calls `body` with `bytes` as an LMDB value.
func withMDBValue<R>(_ bytes: [UInt8], _ body: (UnsafeMutablePointer<MDB_val>) -> R) -> R {
    bytes.withUnsafeBytes { withMDBValue($0, body) }
}

/// Calls `body` with `bytes` as an LMDB value. LMDB does not write to the bytes, although the type would allow it.
func withMDBValue<R>(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeMutablePointer<MDB_val>) -> R) -> R {
    var value = MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    return body(&value)
}
