import CLMDB
import Core
import Foundation
import Platform

/// One LMDB environment: the files of a data directory. Only this process has it open.
///
/// Sendable without the compiler's proof: many threads may use an `MDB_env`, and all fields are constant after `init`.
final class StorageEnvironment: @unchecked Sendable {
    let handle: OpaquePointer
    let packed: MDB_dbi
    let large: MDB_dbi
    let log: MDB_dbi
    let mutations: MDB_dbi
    let records: MDB_dbi
    let meta: MDB_dbi
    let nameHash: NameHash
    let directories = BucketDirectories()
    let pageBytes: Int
    private let lock: DirectoryLock
    private let dataDescriptor: CInt

    static let format: UInt32 = 1

    /// Opens the environment in `directory`, and creates it when it is missing.
    ///
    /// `mapBytes`: the largest size of the data file. Throws `storageInUse` when another process or object has the
    /// environment open, `storageDamaged` when a file is truncated or has another format than this version writes, and
    /// `storageFailed` or `storageFull` for all other failures.
    init(directory: String, mapBytes: Int) throws(ServiceError) {
        lock = try DirectoryLock(directory: directory)
        do throws(StorageFailure) {
            // LMDB would take a missing or empty data file for a new storage. The loss of the data would go unnoticed.
            if lock.isUsed {
                var status = stat()
                guard stat(directory + "/data.mdb", &status) == 0, status.st_size > 0 else {
                    throw .damaged("the data file of \(directory) is missing or empty")
                }
            }
            try StorageEnvironment.reserveReaderTable(in: directory)
        } catch {
            throw error.asServiceError
        }
        var environment: OpaquePointer?
        do throws(StorageFailure) {
            try check(mdb_env_create(&environment), "making the storage environment")
            guard let environment else { throw StorageFailure(ENOMEM, "making the storage environment") }
            do throws(StorageFailure) {
                try check(mdb_env_set_mapsize(environment, mapBytes), "setting the map size")
                try check(mdb_env_set_maxdbs(environment, 6), "setting the number of databases")
                try check(mdb_env_set_maxreaders(environment, 1024), "setting the number of readers")
                // NOTLS: the pool hands read transactions to different threads.
                try check(mdb_env_open(environment, directory, UInt32(MDB_NOTLS), 0o600), "opening \(directory)")
                var stale: CInt = 0
                try check(mdb_reader_check(environment, &stale), "clearing stale readers")
                (pageBytes, dataDescriptor) = try StorageEnvironment.checkFile(of: environment)
                (packed, large, log, mutations, records, meta, nameHash) = try StorageEnvironment.openDatabases(
                    in: environment)
            } catch {
                mdb_env_close(environment)
                throw error
            }
            handle = environment
        } catch {
            throw error.asServiceError
        }
        lock.markUsed()
    }

    deinit {
        mdb_env_close(handle)
    }

    /// Reserves disk blocks for the reader table, which LMDB writes through a map. On a full disk, writing to a page of
    /// it without a block would be a bus error. 1,024 readers take 64 bytes each, plus a header.
    private static func reserveReaderTable(in directory: String) throws(StorageFailure) {
        let descriptor = open(directory + "/lock.mdb", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw StorageFailure(errno, "opening the reader table") }
        defer { close(descriptor) }
        try check(System.reserveSpace(descriptor, bytes: 68 << 10), "reserving space for the reader table")
    }

    /// Checks that the data file is as long as its newest root page says. Reading past its end would be a bus error.
    private static func checkFile(
        of environment: OpaquePointer
    ) throws(StorageFailure) -> (pageBytes: Int, descriptor: CInt) {
        var information = MDB_envinfo()
        var statistics = MDB_stat()
        var descriptor: CInt = -1
        try check(mdb_env_info(environment, &information), "reading the storage's state")
        try check(mdb_env_stat(environment, &statistics), "reading the storage's state")
        try check(mdb_env_get_fd(environment, &descriptor), "reading the storage's state")
        let needed = (information.me_last_pgno + 1) * Int(statistics.ms_psize)
        guard let present = fileBytes(descriptor), present >= needed else {
            throw .damaged("the data file is shorter than its contents (\(needed) bytes)")
        }
        return (Int(statistics.ms_psize), descriptor)
    }

    private static func openDatabases(
        in environment: OpaquePointer
    ) throws(StorageFailure) -> (MDB_dbi, MDB_dbi, MDB_dbi, MDB_dbi, MDB_dbi, MDB_dbi, NameHash) {
        let transaction = try WriteTransaction(environment)
        func open(_ name: String, flags: CInt = 0) throws(StorageFailure) -> MDB_dbi {
            var database: MDB_dbi = 0
            try check(mdb_dbi_open(transaction.handle, name, UInt32(MDB_CREATE | flags), &database), "opening \(name)")
            return database
        }
        let (packed, large) = (try open("packed", flags: MDB_INTEGERKEY), try open("large"))
        let (log, mutations, meta) = (try open("log"), try open("mutations"), try open("meta"))
        let records = try open("records")
        let formatKey = Array("format".utf8)
        if let value = try transaction.get(meta, formatKey) {
            let found = value.count == 4 ? UInt32(littleEndian: value.loadUnaligned(as: UInt32.self)) : 0
            guard found == format else {
                throw StorageFailure(
                    MDB_VERSION_MISMATCH, "the data has format \(found), this version reads format \(format)")
            }
        } else {
            try transaction.put(meta, formatKey, withUnsafeBytes(of: format.littleEndian) { Array($0) })
        }
        let hashKey = Array("hash key".utf8)
        if try transaction.get(meta, hashKey) == nil {
            try transaction.put(meta, hashKey, RandomSource.system.bytes(16))
        }
        guard let nameHash = try transaction.get(meta, hashKey).flatMap({ NameHash(key: $0) }) else {
            throw .damaged("the hash key is damaged")
        }
        try transaction.commit()
        return (packed, large, log, mutations, records, meta, nameHash)
    }

    /// Bytes of the pages in use as of the last commit.
    ///
    /// It reads the list of free pages only when the file is larger than `threshold` bytes. Otherwise it counts free
    /// pages as used.
    func usedBytes(above threshold: Int) throws(StorageFailure) -> Int {
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        let high = (information.me_last_pgno + 1) * pageBytes
        guard high > threshold else { return high }
        return high - (try freePages()) * pageBytes
    }

    /// Counts the pages on LMDB's list of free pages (database 0: each value begins with how many pages it lists). Only
    /// a read transaction may read this list.
    private func freePages() throws(StorageFailure) -> Int {
        var transaction: OpaquePointer?
        try check(mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &transaction), "counting free pages")
        defer { mdb_txn_abort(transaction) }
        var cursor: OpaquePointer?
        try check(mdb_cursor_open(transaction, 0, &cursor), "counting free pages")
        defer { mdb_cursor_close(cursor) }
        var pages = 0
        var key = MDB_val()
        var value = MDB_val()
        var code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
        while code == MDB_SUCCESS {
            pages += value.mv_data?.loadUnaligned(as: Int.self) ?? 0
            code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
        }
        if code != MDB_NOTFOUND { try check(code, "counting free pages") }
        return pages
    }

    /// Makes sure that the disk has blocks for all pages of the file and for `bytes` more.
    func reserve(_ bytes: Int) throws(StorageFailure) {
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        let used = (information.me_last_pgno + 1) * pageBytes
        guard let present = fileBytes(dataDescriptor) else {
            throw StorageFailure(errno, "reading the data file's size")
        }
        guard present < used + bytes else { return }
        // Reserves twice as much, so that most commits find the space already reserved.
        let failure = System.reserveSpace(dataDescriptor, bytes: used + 2 * bytes)
        guard failure != 0 else { return }
        try check(System.reserveSpace(dataDescriptor, bytes: used + bytes), "reserving disk space")
    }

    /// The length of the data file in bytes.
    var fileSize: Int { fileBytes(dataDescriptor) ?? 0 }
}
