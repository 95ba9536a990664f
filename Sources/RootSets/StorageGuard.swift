import CLMDB
import CStorageGuard

/// Notices faults that the calling thread meets inside of LMDB: failed assertions, and signals. It counts from its
/// making on.
struct StorageGuard {
    private let before = storage_guard_thread_faults()

    /// Whether the thread has met a fault since.
    var hasFault: Bool { storage_guard_thread_faults() != before }

    /// The last fault since; `nil` when there was none.
    var fault: StorageFailure? {
        hasFault ? .failed(StorageGuard.reason) : nil
    }

    /// What the thread's last fault was.
    static var reason: String { String(cString: storage_guard_reason()) }
}

/// A range of memory that maps a file. A page of it that can't be read is read as zeros and counted, instead of ending
/// the process, while this object exists.
final class CoveredMap: Sendable {
    private let place: CInt
    private let start: UInt
    private let count: Int

    /// `nil` when too many maps are covered.
    init?(_ bytes: UnsafeRawBufferPointer) {
        (start, count) = (UInt(bitPattern: bytes.baseAddress), bytes.count)
        place = storage_map_add(bytes.baseAddress, bytes.count)
        guard place >= 0 else { return nil }
    }

    /// Whether bytes are within the map.
    func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let first = UInt(bitPattern: bytes.baseAddress)
        return first >= start && first - start <= UInt(count) && bytes.count <= count - Int(first - start)
    }

    /// An aligned number of eight bytes as it is there now; `nil` outside of the map.
    @inline(__always)
    func number(at offset: Int) -> UInt64? {
        guard offset >= 0, offset + 8 <= count else { return nil }
        return UnsafeRawPointer(bitPattern: start + UInt(offset))?.load(as: UInt64.self)
    }

    deinit {
        storage_map_remove(place)
    }

    var hasFault: Bool { storage_map_faults(place) != 0 }

    /// The first page that could not be read; `nil` when all could.
    var fault: StorageFailure? {
        guard hasFault else { return nil }
        return .failed(
            "the data file can't be read at byte \(storage_map_first_fault(place)): it was cut, or the disk fails")
    }
}

// LMDB's functions, each in its guard. Within this target these are what the names of LMDB's functions mean, so no
// call is without a guard. They return `STORAGE_FAULT` besides LMDB's codes.

func mdb_env_open(
    _ env: OpaquePointer?, _ path: String, _ flags: UInt32, _ mode: mdb_mode_t
) -> CInt { guarded_env_open(env, path, flags, mode) }

func mdb_env_close(_ env: OpaquePointer?) { _ = guarded_env_close(env) }

func mdb_env_info(_ env: OpaquePointer?, _ info: UnsafeMutablePointer<MDB_envinfo>?) -> CInt {
    guarded_env_info(env, info)
}

func mdb_env_stat(_ env: OpaquePointer?, _ statistics: UnsafeMutablePointer<MDB_stat>?) -> CInt {
    guarded_env_stat(env, statistics)
}

func mdb_env_set_mapsize(_ env: OpaquePointer?, _ size: Int) -> CInt { guarded_env_set_mapsize(env, size) }

func mdb_reader_check(_ env: OpaquePointer?, _ dead: UnsafeMutablePointer<CInt>?) -> CInt {
    guarded_reader_check(env, dead)
}

func mdb_reader_list(
    _ env: OpaquePointer?, _ tell: @convention(c) (UnsafePointer<CChar>?, UnsafeMutableRawPointer?) -> CInt,
    _ context: UnsafeMutableRawPointer?
) -> CInt { guarded_reader_list(env, tell, context) }

func mdb_txn_begin(
    _ env: OpaquePointer?, _ parent: OpaquePointer?, _ flags: UInt32, _ txn: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt { guarded_txn_begin(env, parent, flags, txn) }

func mdb_txn_commit(_ txn: OpaquePointer?) -> CInt { guarded_txn_commit(txn) }
func mdb_txn_renew(_ txn: OpaquePointer?) -> CInt { guarded_txn_renew(txn) }
func mdb_txn_reset(_ txn: OpaquePointer?) { _ = guarded_txn_reset(txn) }
func mdb_txn_abort(_ txn: OpaquePointer?) { _ = guarded_txn_abort(txn) }

func mdb_dbi_open(
    _ txn: OpaquePointer?, _ name: String, _ flags: UInt32, _ database: UnsafeMutablePointer<MDB_dbi>?
) -> CInt { guarded_dbi_open(txn, name, flags, database) }

func mdb_stat(_ txn: OpaquePointer?, _ database: MDB_dbi, _ statistics: UnsafeMutablePointer<MDB_stat>?) -> CInt {
    guarded_stat(txn, database, statistics)
}

func mdb_get(
    _ txn: OpaquePointer?, _ database: MDB_dbi, _ key: UnsafeMutablePointer<MDB_val>?,
    _ data: UnsafeMutablePointer<MDB_val>?
) -> CInt { guarded_get(txn, database, key, data) }

func mdb_put(
    _ txn: OpaquePointer?, _ database: MDB_dbi, _ key: UnsafeMutablePointer<MDB_val>?,
    _ data: UnsafeMutablePointer<MDB_val>?, _ flags: UInt32
) -> CInt { guarded_put(txn, database, key, data, flags) }

func mdb_del(
    _ txn: OpaquePointer?, _ database: MDB_dbi, _ key: UnsafeMutablePointer<MDB_val>?,
    _ data: UnsafeMutablePointer<MDB_val>?
) -> CInt { guarded_del(txn, database, key, data) }

func mdb_drop(_ txn: OpaquePointer?, _ database: MDB_dbi, _ deletes: CInt) -> CInt {
    guarded_drop(txn, database, deletes)
}

func mdb_cursor_open(
    _ txn: OpaquePointer?, _ database: MDB_dbi, _ cursor: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt { guarded_cursor_open(txn, database, cursor) }

func mdb_cursor_renew(_ txn: OpaquePointer?, _ cursor: OpaquePointer?) -> CInt { guarded_cursor_renew(txn, cursor) }

func mdb_cursor_get(
    _ cursor: OpaquePointer?, _ key: UnsafeMutablePointer<MDB_val>?, _ data: UnsafeMutablePointer<MDB_val>?,
    _ operation: MDB_cursor_op
) -> CInt { guarded_cursor_get(cursor, key, data, operation) }

func mdb_cursor_del(_ cursor: OpaquePointer?, _ flags: UInt32) -> CInt { guarded_cursor_del(cursor, flags) }
