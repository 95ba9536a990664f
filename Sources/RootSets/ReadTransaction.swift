import CLMDB
import Core
import Dispatch
import Foundation

/// A read with cursors over both databases of sets. It is made once and renewed for each use.
///
/// Sendable without the compiler's proof: one thread uses a transaction at a time. The pool hands it on under its lock.
/// With MDB_NOTLS, different threads may use it in turn.
final class ReadTransaction: @unchecked Sendable {
    let handle: OpaquePointer
    let packed: OpaquePointer
    let large: OpaquePointer
    let environment: StorageEnvironment
    /// True between `renew` and `reset`.
    private var isInUse = false

    init(_ environment: StorageEnvironment) throws(StorageFailure) {
        var packed: OpaquePointer?
        var large: OpaquePointer?
        let handle = try environment.beginReader()
        let code = mdb_cursor_open(handle, environment.packed.handle, &packed)
        let largeCode = mdb_cursor_open(handle, environment.large.handle, &large)
        guard let packed, let large else {
            packed.map { mdb_cursor_close($0) }
            large.map { mdb_cursor_close($0) }
            environment.end(handle)
            throw StorageFailure(code == MDB_SUCCESS ? largeCode : code, "beginning a read")
        }
        mdb_txn_reset(handle)
        self.handle = handle
        self.packed = packed
        self.large = large
        self.environment = environment
    }

    deinit {
        // LMDB's cursors of a read transaction are this object's own memory, whatever happened to the transaction.
        mdb_cursor_close(packed)
        mdb_cursor_close(large)
        environment.end(handle)
    }

    /// Begins a read that sees everything committed before this call. It lasts until `reset`.
    func renew() throws(StorageFailure) {
        precondition(!isInUse, "a read transaction is used by two readers")
        let known = environment.newestCommit
        try check(mdb_txn_renew(handle), "beginning a read")
        if let fault = environment.fault(ofSnapshot: number, known: known) {
            mdb_txn_reset(handle)
            environment.health.report(.failed, fault.action)
            throw fault
        }
        try check(mdb_cursor_renew(handle, packed), "beginning a read")
        try check(mdb_cursor_renew(handle, large), "beginning a read")
        isInUse = true
    }

    /// LMDB's number of the commit that the snapshot shows.
    var number: Int { Int(mdb_txn_id(handle)) }

    /// Reads the version of the sets in this snapshot.
    func setsVersion() throws(StorageFailure) -> SetsVersion {
        guard let value = try value(environment.meta, SetsVersion.key) else { return .initial }
        return try SetsVersion(reading: value.contents)
    }

    /// Reads how far a shared log was applied.
    func sharedPlace() throws(StorageFailure) -> SharedPlace? {
        try SharedPlace.read(try value(environment.meta, SharedPlace.key))
    }

    /// Reads a value, which stays in the map; `nil` when there is none.
    ///
    /// Throws `damaged` when it is not what was written.
    func value(_ database: Database, _ key: [UInt8]) throws(StorageFailure) -> SealedValue? {
        try key.withRawBytes { key throws(StorageFailure) in try value(database, key) }
    }

    /// Reads a value, which stays in the map; `nil` when there is none.
    ///
    /// Throws `damaged` when it is not what was written.
    func value(_ database: Database, _ key: UnsafeRawBufferPointer) throws(StorageFailure) -> SealedValue? {
        try database.checkTrust()
        return try untrustedValue(database, key)
    }

    /// Does the same before the database was checked.
    private func untrustedValue(
        _ database: Database, _ key: UnsafeRawBufferPointer
    ) throws(StorageFailure) -> SealedValue? {
        var value = MDB_val()
        let code = withMDBValue(key) { key in mdb_get(handle, database.handle, key, &value) }
        if code == MDB_NOTFOUND { return nil }
        try check(code, "reading")
        return try database.open(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size), at: key)
    }

    func totals() throws(StorageFailure) -> Totals {
        try environment.meta.checkTrust()
        return try untrustedTotals()
    }

    /// Does the same for the check of the start.
    func untrustedTotals() throws(StorageFailure) -> Totals {
        let value = try Totals.key.withRawBytes { key throws(StorageFailure) in
            try untrustedValue(environment.meta, key)
        }
        guard let value else { throw .damaged("the totals are missing") }
        let totals = try Totals(reading: value.contents)
        guard totals.transaction >= UInt64(mdb_txn_id(handle)) else { throw .damaged("the totals are out of date") }
        return totals
    }

    func reset() {
        precondition(isInUse, "a read transaction was reset twice")
        isInUse = false
        mdb_txn_reset(handle)
    }
}

/// The environment that is open now, with read transactions that are not in use. A new transaction is made only when
/// all are in use. So there are as many as there are readers at one time: the workers and the few other threads that
/// read.
///
/// After a failure the environment is given up. It is closed when its last reader has ended, and another one may be
/// adopted then. While the storage has failed, nothing is read or written.
final class ReadTransactionPool: Sendable {
    private struct State {
        var environment: StorageEnvironment?
        /// Transactions of this environment.
        var idle: [ReadTransaction] = []
    }

    let health: StorageHealth
    private let state: Lock<State>

    init(_ environment: StorageEnvironment) {
        health = environment.health
        state = Lock(State(environment: environment))
    }

    /// The environment for a write or a read.
    ///
    /// Throws while the storage has failed.
    func environment() throws(StorageFailure) -> StorageEnvironment {
        try state.withLock { state throws(StorageFailure) -> StorageEnvironment in try open(state) }
    }

    private func open(_ state: State) throws(StorageFailure) -> StorageEnvironment {
        guard !health.hasFailed, let environment = state.environment else { throw failure }
        return environment
    }

    private var failure: StorageFailure {
        .failed("the storage has failed, \(health.finding?.what ?? "and is opened again")")
    }

    /// Calls `body` with a transaction that sees everything committed before this call.
    ///
    /// What `body` returns was read from pages that could be read: if there was a fault meanwhile, this throws.
    func withTransaction<R>(
        _ body: (ReadTransaction) throws(StorageFailure) -> R
    ) throws(StorageFailure) -> R {
        typealias Taken = (environment: StorageEnvironment, transaction: ReadTransaction?)
        let (environment, pooled) = try state.withLock { state throws(StorageFailure) -> Taken in
            (try open(state), state.idle.popLast())
        }
        // As long as it is held, no other one is open. So what is reported is about this one.
        return try withExtendedLifetime(environment) { () throws(StorageFailure) -> R in
            let guarded = StorageGuard()
            do throws(StorageFailure) {
                let result = try withUnguardedTransaction(pooled, environment, body)
                if let fault = guarded.fault { throw fault }
                return result
            } catch {
                if let fault = guarded.fault {
                    health.report(.failed, fault.action)
                    throw fault
                }
                if error.isPanic { health.report(.failed, "a commit could not be written to the disk") }
                if let unusable = error.unusable { health.report(.failed, unusable) }
                throw error
            }
        }
    }

    private func withUnguardedTransaction<R>(
        _ pooled: ReadTransaction?, _ environment: StorageEnvironment,
        _ body: (ReadTransaction) throws(StorageFailure) -> R
    ) throws(StorageFailure) -> R {
        let transaction = if let pooled { pooled } else { try ReadTransaction(environment) }
        try transaction.renew()
        defer {
            transaction.reset()
            state.withLock { state in
                if state.environment === environment { state.idle.append(transaction) }
            }
        }
        let result = try body(transaction)
        if let fault = environment.hasFault ? environment.fault : environment.cut {
            health.report(.failed, fault.action)
            throw fault
        }
        // Another reader or the writer may have met a fault that this one has not seen.
        guard !health.hasFailed else { throw failure }
        return result
    }

    /// Gives the environment up. Returns what is signalled when it was closed; `nil` if there was none.
    func retire() -> DispatchSemaphore? {
        let retired = state.withLock { state -> State in
            defer { state = State() }
            return state
        }
        retired.environment?.trust.retire()
        retired.environment?.stopChecking()
        return retired.environment?.closing
    }

    /// Gives the environment up without ever closing it, because a fault has left LMDB's memory in an unknown state.
    func abandon() {
        let abandoned = state.withLock { state -> State in
            defer { state = State() }
            return state
        }
        if let environment = abandoned.environment { _ = Unmanaged.passRetained(environment) }
    }

    func adopt(_ environment: StorageEnvironment) {
        state.withLock { state in
            precondition(state.environment == nil, "an environment was adopted while another one is open")
            state.environment = environment
        }
    }
}
