import CLMDB
import Core
import Foundation
import Synchronization

/// A read transaction with a cursor over the sets, made once and renewed for each use.
///
/// Sendable without the compiler's proof: one thread holds it at a time; the
/// pool hands it over under its lock, and MDB_NOTLS lets it change threads.
final class ReadTransaction: @unchecked Sendable {
    let handle: OpaquePointer
    let cursor: OpaquePointer
    private let environment: StorageEnvironment

    init(_ environment: StorageEnvironment) throws(StorageFailure) {
        var handle: OpaquePointer?
        var cursor: OpaquePointer?
        try check(mdb_txn_begin(environment.handle, nil, UInt32(MDB_RDONLY), &handle), "beginning a read")
        guard let handle else { throw StorageFailure(ENOMEM, "beginning a read") }
        let code = mdb_cursor_open(handle, environment.sets, &cursor)
        guard code == MDB_SUCCESS, let cursor else {
            mdb_txn_abort(handle)
            throw StorageFailure(code, "beginning a read")
        }
        mdb_txn_reset(handle)
        self.handle = handle
        self.cursor = cursor
        self.environment = environment
    }

    deinit {
        mdb_cursor_close(cursor)
        mdb_txn_abort(handle)
    }

    /// Sees everything committed before this call, until `reset`.
    func renew() throws(StorageFailure) {
        try check(mdb_txn_renew(handle), "beginning a read")
        try check(mdb_cursor_renew(handle, cursor), "beginning a read")
    }

    func reset() {
        mdb_txn_reset(handle)
    }
}

/// Read transactions that nobody uses now. As many are made as there are ever
/// readers at once: the workers and the few other threads that read.
final class ReadTransactionPool: Sendable {
    private let environment: StorageEnvironment
    private let idle = Mutex<[ReadTransaction]>([])

    init(_ environment: StorageEnvironment) {
        self.environment = environment
    }

    /// Lends a transaction that sees everything committed before this call.
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
