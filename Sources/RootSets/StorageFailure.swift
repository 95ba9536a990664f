import CLMDB
import Core
import Foundation

/// A failed LMDB or system call of the storage layer. `asServiceError` turns it into the answer to a request.
struct StorageFailure: Error {
    let code: CInt
    let action: String

    init(_ code: CInt, _ action: String) {
        self.code = code
        self.action = action
    }

    /// Whether space is lacking: in the map, on the disk, or within a quota.
    var isLackOfSpace: Bool {
        code == MDB_MAP_FULL || code == MDB_TXN_FULL || code == ENOSPC || code == EDQUOT || code == EFBIG
    }

    /// The error that a client gets.
    var asServiceError: ServiceError {
        let text = "\(action): \(String(cString: mdb_strerror(code)))"
        if isLackOfSpace { return ServiceError(.storageFull, detail: UInt32(bitPattern: code), text) }
        switch code {
        case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_PANIC, MDB_VERSION_MISMATCH, MDB_INVALID, MDB_INCOMPATIBLE,
            MDB_BAD_VALSIZE, MDB_BAD_TXN, MDB_BAD_DBI:
            return ServiceError(.storageDamaged, detail: UInt32(bitPattern: code), text)
        default:
            return ServiceError(.storageFailed, detail: UInt32(bitPattern: code), text)
        }
    }

    /// A failure for a record whose contents are inconsistent.
    static func damaged(_ what: String) -> StorageFailure {
        StorageFailure(MDB_CORRUPTED, what)
    }
}

/// Throws unless `code` is LMDB's success.
func check(_ code: CInt, _ action: @autoclosure () -> String) throws(StorageFailure) {
    guard code == MDB_SUCCESS else { throw StorageFailure(code, action()) }
}
