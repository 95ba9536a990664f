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
    private var cursors: [DatabaseName: OpaquePointer] = [:]
    /// What this transaction has changed in the counts and sums of the databases.
    private(set) var tallies = Tallies()
    /// Databases that this transaction has written to. They are so few that a search of the list is quick.
    private(set) var written: [DatabaseName] = []
    /// What it holds of the list reserve.
    var held: ListReserve.Held?

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
        // What is built on an older state would bring back what was removed.
        if let fault = environment.fault(ofSnapshot: number - 1, known: environment.newestCommit) { throw fault }
    }

    deinit {
        // If `init` threw, the transaction never began.
        thread.assertIsCurrentOrUnbound()
        // After a fault LMDB's lists are in an unknown state.
        if let handle, !guarded.hasFault { mdb_txn_abort(handle) }
    }

    /// The number of the transaction: one more than that of the commit before.
    var number: Int { handle.map { Int(mdb_txn_id($0)) } ?? 0 }

    /// Reads the totals.
    ///
    /// Throws `damaged` when they are missing, or not what was written.
    func totals(in meta: Database) throws(StorageFailure) -> Totals {
        guard let value = try get(meta, Totals.key) else { throw .damaged("the totals are missing") }
        let totals = try Totals(reading: value.contents)
        // This transaction is the one behind the last commit.
        guard totals.transaction &+ 1 >= UInt64(number) else { throw .damaged("the totals are out of date") }
        return totals
    }

    /// Writes the totals, with what this transaction has changed in them so far. Behind them it may write
    /// only what they do not count (`ListReserve`).
    func put(_ totals: Totals, in meta: Database) throws(StorageFailure) {
        var totals = totals
        totals.tallies += tallies
        totals.transaction = UInt64(number)
        try put(meta, Totals.key, totals.bytes, version: totals.sequence, isCounted: false)
    }

    /// Makes all writes durable. The transaction has ended afterwards, even when this throws.
    func commit() throws(StorageFailure) {
        thread.assertIsCurrent()
        guard handle != nil else { throw StorageFailure(MDB_BAD_TXN, "committing") }
        let number = number
        // What was read of a page that can't be read must not be written.
        if !written.isEmpty, let fault = environment?.fault ?? environment?.cut ?? environment?.displacement {
            throw fault
        }
        guard let handle else { throw StorageFailure(MDB_BAD_TXN, "committing") }
        self.handle = nil
        try check(mdb_txn_commit(handle), "committing")
        try environment?.note(commit: number)
        environment?.trust.noteLength()
    }

    private func assertIsOpen() {
        thread.assertIsCurrent()
        precondition(handle != nil, "a write was attempted after the commit")
    }

    private func noteWrite(to database: Database) {
        assertIsOpen()
        watch?.proceed()
        if !written.contains(database.name) { written.append(database.name) }
    }

    /// Reads the value of `key` as it stands in the file, borrowed until the next write; `nil` when there is none.
    func bytes(_ database: Database, _ key: [UInt8]) throws(StorageFailure) -> UnsafeRawBufferPointer? {
        var value = MDB_val()
        let code = withMDBValue(key) { key in mdb_get(handle, database.handle, key, &value) }
        if code == MDB_NOTFOUND { return nil }
        try check(code, "reading")
        return UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
    }

    /// Reads the value of `key`, borrowed until the next write; `nil` when there is none.
    ///
    /// Throws `damaged` when it is not what was written.
    func get(_ database: Database, _ key: [UInt8]) throws(StorageFailure) -> SealedValue? {
        guard let value = try bytes(database, key) else { return nil }
        return try key.withRawBytes { key throws(StorageFailure) in try database.open(value, at: key) }
    }

    /// Whether a database has no entry.
    func isEmpty(_ database: Database) throws(StorageFailure) -> Bool {
        var statistics = MDB_stat()
        try check(mdb_stat(handle, database.handle, &statistics), "counting entries")
        return statistics.ms_entries == 0
    }

    /// Copies entries as they stand in the file, in order, from the first one behind `last` on: at most `countMax`, and
    /// none after one with which they have `bytesMax` bytes. `last`: empty for the first entries.
    func entries(
        of database: Database, after last: [UInt8], countMax: Int, bytesMax: Int
    ) throws(StorageFailure) -> [(key: [UInt8], value: [UInt8])] {
        try withCursor(database) { cursor throws(StorageFailure) in
            var entries: [(key: [UInt8], value: [UInt8])] = []
            var bytes = 0
            var key = MDB_val()
            var value = MDB_val()
            var code =
                last.isEmpty
                ? mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
                : withMDBValue(last) { wanted in
                    key = wanted.pointee
                    return mdb_cursor_get(cursor, &key, &value, MDB_SET)
                }
            if !last.isEmpty {
                try check(code, "reading")
                code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
            }
            while code == MDB_SUCCESS, entries.count < countMax, bytes < bytesMax {
                entries.append(
                    (
                        Array(UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size)),
                        Array(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
                    ))
                bytes += key.mv_size + value.mv_size
                code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
            }
            if code != MDB_NOTFOUND { try check(code, "reading") }
            return entries
        }
    }

    /// Seals and writes a value. `version`: the sequence of the mutation that writes it. `isNew`: whether the key is
    /// known to have no value. `isAppended`: whether the key is behind all others, too. `isCounted`: false for the
    /// totals, which can't count themselves. Returns the checksum.
    ///
    /// Throws `damaged` when the value that is replaced is not what was written.
    @discardableResult
    func put(
        _ database: Database, _ key: [UInt8], _ contents: [UInt8], version: UInt64, isNew: Bool = false,
        isAppended: Bool = false, isCounted: Bool = true
    ) throws(StorageFailure) -> UInt64 {
        assertIsOpen()
        if isCounted, !isNew, !isAppended, let present = try get(database, key) {
            tallies[database.name].subtract(present.checksum)
        }
        let seed = key.withUnsafeBytes { database.seed(of: $0) }
        let (bytes, checksum) = SealedValue.bytes(of: contents, version: version, seed: seed)
        try putBytes(database, key, bytes, isAppended: isAppended)
        if isCounted { tallies[database.name].add(checksum) }
        return checksum
    }

    /// Writes bytes as they are, and counts nothing.
    func putBytes(
        _ database: Database, _ key: [UInt8], _ bytes: [UInt8], isAppended: Bool = false
    ) throws(StorageFailure) {
        noteWrite(to: database)
        guard held != nil, let reserve = environment.map({ ListReserve(self, $0) }),
            reserve.lends(toValueOf: bytes.count)
        else { return try write(database, key, bytes, isAppended: isAppended) }
        // LMDB copies the way to the value and splits pages for it, before the value itself is written.
        try write(database, key, WriteTransaction.placeholder, isAppended: isAppended)
        try reserve.lend(toValueOf: bytes.count) { () throws(StorageFailure) in
            try write(database, key, bytes, isAppended: false)
        }
    }

    /// What stands for a long value. It has no less room in a leaf than the place of that value.
    private static let placeholder = [UInt8](repeating: 0, count: 16)

    private func write(
        _ database: Database, _ key: [UInt8], _ bytes: [UInt8], isAppended: Bool
    ) throws(StorageFailure) {
        let code = withMDBValue(key) { key in
            withMDBValue(bytes) { value in
                mdb_put(handle, database.handle, key, value, isAppended ? UInt32(MDB_APPEND) : 0)
            }
        }
        try check(code, "writing")
    }

    /// Deletes a key. Returns whether there was such a key.
    ///
    /// Throws `damaged` when its value is not what was written.
    @discardableResult
    func delete(_ database: Database, _ key: [UInt8]) throws(StorageFailure) -> Bool {
        assertIsOpen()
        guard let present = try get(database, key) else { return false }
        let checksum = present.checksum
        try deleteBytes(database, key)
        tallies[database.name].subtract(checksum)
        return true
    }

    /// Deletes a key whatever its value is, and counts nothing.
    func deleteBytes(_ database: Database, _ key: [UInt8]) throws(StorageFailure) {
        noteWrite(to: database)
        try check(withMDBValue(key) { key in mdb_del(handle, database.handle, key, nil) }, "deleting")
    }

    /// Deletes all entries, and forgets what this transaction has counted of the database. Reads none of them, and
    /// copies no page of theirs. No cursor may have been used over it.
    func deleteAll(_ database: Database) throws(StorageFailure) {
        noteWrite(to: database)
        precondition(cursors[database.name] == nil, "a cursor would be left behind")
        try check(mdb_drop(handle, database.handle, 0), "deleting")
        tallies[database.name] = DatabaseTally()
    }

    /// Deletes the entry at `cursor`, which must be a cursor over `database`.
    ///
    /// Throws `damaged` when its value is not what was written.
    func delete(_ database: Database, at cursor: OpaquePointer) throws(StorageFailure) {
        assert(cursors[database.name] == cursor, "a cursor is of another database or transaction")
        noteWrite(to: database)
        var key = MDB_val()
        var value = MDB_val()
        try check(mdb_cursor_get(cursor, &key, &value, MDB_GET_CURRENT), "deleting")
        let present = try database.open(
            UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size),
            at: UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size))
        let checksum = present.checksum
        try check(mdb_cursor_del(cursor, 0), "deleting")
        tallies[database.name].subtract(checksum)
    }

    /// Calls `body` with a cursor over `database`, whose position is undefined. The cursor is for reading and for
    /// `delete(_:at:)`.
    func withCursor<R>(
        _ database: Database, _ body: (OpaquePointer) throws(StorageFailure) -> R
    ) throws(StorageFailure) -> R {
        thread.assertIsCurrent()
        precondition(handle != nil, "a read was attempted after the commit")
        if let cursor = cursors[database.name] { return try body(cursor) }
        var cursor: OpaquePointer?
        try check(mdb_cursor_open(handle, database.handle, &cursor), "reading")
        guard let cursor else { throw StorageFailure(ENOMEM, "reading") }
        cursors[database.name] = cursor
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
