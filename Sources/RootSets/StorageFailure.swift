import CLMDB
import CStorageGuard
import Core
import Foundation

/// A failed LMDB or system call of the storage layer. `asServiceError` turns it into the answer to a request.
struct StorageFailure: Error {
    let code: CInt
    let action: String
    /// Whether `action` says all: the code is not LMDB's or the system's answer.
    private let isWhole: Bool

    init(_ code: CInt, _ action: String) {
        self.init(code, action, isWhole: code == STORAGE_FAULT)
    }

    private init(_ code: CInt, _ action: String, isWhole: Bool) {
        (self.code, self.action, self.isWhole) = (code, action, isWhole)
    }

    /// Whether space is lacking: in the map, on the disk, or within a quota.
    var isLackOfSpace: Bool {
        code == MDB_MAP_FULL || code == MDB_TXN_FULL || code == ENOSPC || code == EDQUOT || code == EFBIG
    }

    /// One line: what failed and why.
    var text: String { isWhole ? action : "\(action): \(String(cString: mdb_strerror(code)))" }

    /// The check of the start has not come to what is read.
    static let unchecked = StorageFailure(EAGAIN, "the storage is being checked after its start", isWhole: true)

    /// The error that a client gets.
    var asServiceError: ServiceError {
        if isLackOfSpace { return ServiceError(.storageFull, detail: UInt32(bitPattern: code), text) }
        switch code {
        case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_PANIC, MDB_VERSION_MISMATCH, MDB_INVALID, MDB_INCOMPATIBLE,
            MDB_BAD_VALSIZE, MDB_BAD_TXN, MDB_BAD_DBI, MDB_MAP_RESIZED, STORAGE_FAULT:
            return ServiceError(.storageDamaged, detail: UInt32(bitPattern: code), text)
        case EAGAIN where isWhole: return ServiceError(.busy, detail: Limits.uncheckedMilliseconds, text)
        case ECANCELED where isWhole: return ServiceError(.busy, text)
        default:
            return ServiceError(.storageFailed, detail: UInt32(bitPattern: code), text)
        }
    }

    /// Whether stored data contradict themselves.
    var isDamage: Bool { code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND }

    /// Whether an error with that detail says that stored data contradict themselves. The layers above give none.
    static func isDamage(detail: UInt32) -> Bool {
        detail == 0 || StorageFailure(CInt(bitPattern: detail), "").isDamage
    }

    /// Whether LMDB takes no more transactions, because the meta page could not be written.
    var isPanic: Bool { code == MDB_PANIC }

    /// Why LMDB can't begin a transaction, if it is because of what it finds in a meta page or in the table of readers.
    var unusable: String? {
        switch code {
        // The data would be larger than the map, which no other process changes, or the page leads nowhere.
        case MDB_MAP_RESIZED, MDB_BAD_TXN, MDB_INVALID: "the data file is damaged, \(text)"
        // A mutex in the table is none, or a reader's place is another one's.
        case EINVAL, MDB_BAD_RSLOT: "the table of readers was written over, \(text)"
        default: nil
        }
    }

    /// Whether nothing may be answered from the environment any more.
    var isFault: Bool { code == STORAGE_FAULT }

    /// A failure after which nothing may be answered from this environment.
    static func failed(_ what: String) -> StorageFailure {
        StorageFailure(STORAGE_FAULT, what)
    }

    /// Something else, as a pipe, is where a file should be.
    static func noFile(_ name: String) -> StorageFailure {
        StorageFailure(ESPIPE, "\(name) is no file: move it away, and the next start makes one", isWhole: true)
    }

    /// Why a storage can't go on with the log that it shares. The storage itself is whole.
    static func mismatched(_ what: String) -> StorageFailure {
        StorageFailure(EPROTO, what, isWhole: true)
    }

    /// Why data that are whole can't be used for what was asked: a whole sentence.
    static func unsuitable(_ sentence: String) -> StorageFailure {
        StorageFailure(EINVAL, sentence, isWhole: true)
    }

    /// Why this process can't use a storage that another one uses: a whole sentence.
    static func conflicting(_ sentence: String) -> StorageFailure {
        StorageFailure(EBUSY, sentence, isWhole: true)
    }

    /// Why a backup can't be made or restored: a whole sentence.
    static func refused(_ sentence: String) -> StorageFailure {
        StorageFailure(STORAGE_FAULT, sentence)
    }

    /// Why a reading has ended before its end, beside a service that needs what it costs: a whole sentence.
    static func givenUp(_ sentence: String) -> StorageFailure {
        StorageFailure(ECANCELED, sentence, isWhole: true)
    }

    /// A failure for a record whose contents are inconsistent.
    static func damaged(_ what: String) -> StorageFailure {
        StorageFailure(MDB_CORRUPTED, what, isWhole: true)
    }
}

/// Throws unless `code` is LMDB's success.
func check(_ code: CInt, _ action: @autoclosure () -> String) throws(StorageFailure) {
    guard code == MDB_SUCCESS else {
        throw StorageFailure(code, code == STORAGE_FAULT ? "\(action()): \(StorageGuard.reason)" : action())
    }
}
