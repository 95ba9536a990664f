import CLMDB
import Core
import Foundation
import Synchronization

/// A read transaction with cursors over both databases of sets. It is made once and renewed for each use.
///
/// Sendable without the compiler's proof: one thread uses a transaction at a time. The pool hands it on under its lock.
/// With MDB_NOTLS, different threads may use it in turn.
final class ReadTransaction: @unchecked Sendable {
    let handle: OpaquePointer
    let packed: OpaquePointer
    let large: OpaquePointer
    private let environment: StorageEnvironment
    /// True between `renew` and `reset`.
    private var isInUse = false

    init(_ environment: StorageEnvironment) throws(StorageFailure) {
        var handle: OpaquePointer?
        var packed: OpaquePointer?
        var large: OpaquePointer?
        try check(mdb_txn_begin(environment.handle, nil, UInt32(MDB_RDONLY), &handle), "beginning a read")
        guard let handle else { throw StorageFailure(ENOMEM, "beginning a read") }
        let code = mdb_cursor_open(handle, environment.packed, &packed)
        let largeCode = mdb_cursor_open(handle, environment.large, &large)
        guard let packed, let large else {
            packed.map { mdb_cursor_close($0) }
            large.map { mdb_cursor_close($0) }
            mdb_txn_abort(handle)
            throw StorageFailure(code == MDB_SUCCESS ? largeCode : code, "beginning a read")
        }
        mdb_txn_reset(handle)
        self.handle = handle
        self.packed = packed
        self.large = large
        self.environment = environment
    }

    deinit {
        mdb_cursor_close(packed)
        mdb_cursor_close(large)
        mdb_txn_abort(handle)
    }

    /// Begins a read that sees everything committed before this call. It lasts until `reset`.
    func renew() throws(StorageFailure) {
        precondition(!isInUse, "a read transaction is used by two readers")
        try check(mdb_txn_renew(handle), "beginning a read")
        try check(mdb_cursor_renew(handle, packed), "beginning a read")
        try check(mdb_cursor_renew(handle, large), "beginning a read")
        isInUse = true
    }

    /// Reads the version of the sets in this snapshot.
    func setsVersion() throws(StorageFailure) -> SetsVersion {
        var value = MDB_val()
        let code = withMDBValue(SetsVersion.key) { mdb_get(handle, environment.meta, $0, &value) }
        if code == MDB_NOTFOUND { return .initial }
        try check(code, "reading the version of the sets")
        return try SetsVersion(reading: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
    }

    func reset() {
        precondition(isInUse, "a read transaction was reset twice")
        isInUse = false
        mdb_txn_reset(handle)
    }
}

/// Keeps read transactions that are not in use. It makes a new one only when all are in use. So it makes as many as
/// there are readers at one time: the workers and the few other threads that read.
final class ReadTransactionPool: Sendable {
    private let environment: StorageEnvironment
    private let idle = Mutex<[ReadTransaction]>([])

    init(_ environment: StorageEnvironment) {
        self.environment = environment
    }

    /// Calls `body` with a transaction that sees everything committed before this call.
    func withTransaction<R>(
        _ body: (ReadTransaction) throws(StorageFailure) -> R
    ) throws(StorageFailure) -> R {
        let transaction: ReadTransaction
        if let pooled = idle.withLock({ $0.popLast() }) {
            transaction = pooled
        } else {
            transaction = try ReadTransaction(environment)
        }
        try transaction.renew()
        defer {
            transaction.reset()
            idle.withLock { $0.append(transaction) }
        }
        return try body(transaction)
    }
}
