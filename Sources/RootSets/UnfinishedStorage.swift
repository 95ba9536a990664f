import CLMDB
import CStorageGuard
import Core
import Foundation

/// The data file of a storage that is being restored or repaired. Until `finish` it has no format, so no service takes
/// it for a storage. It is made durable when it is opened as a storage.
final class UnfinishedStorage {
    private static let bytesPerCommit = 4 << 20
    /// What is only written at the end.
    private static let lastKeys = [StorageFormat.key, Totals.key, SetsVersion.key]

    private let handle: OpaquePointer
    private let guarded = StorageGuard()
    private let databases: Databases
    private var pending: [BackupEntry] = []
    private var pendingBytes = 0
    /// Entries of `meta`.
    private var meta: [[UInt8]: [UInt8]] = [:]

    /// `mapBytes`: more than the file will take.
    init(directory: String, mapBytes: Int) throws(StorageFailure) {
        storage_guard_install()
        try ReaderTable.prepare(in: directory)
        var environment: OpaquePointer?
        try check(mdb_env_create(&environment), "making the storage environment")
        guard let environment else { throw StorageFailure(ENOMEM, "making the storage environment") }
        storage_guard_watch(environment)
        do throws(StorageFailure) {
            try check(mdb_env_set_mapsize(environment, mapBytes), "setting the map size")
            try check(mdb_env_set_maxdbs(environment, 6), "setting the number of databases")
            let flags = UInt32(MDB_NOTLS | MDB_NOSYNC)
            try check(mdb_env_open(environment, directory, flags, 0o600), "opening \(directory)")
            let transaction = try WriteTransaction(environment)
            databases = try Databases(transaction, DatabaseTrust(StorageHealth()))
            try transaction.commit()
        } catch {
            if !guarded.hasFault { mdb_env_close(environment) }
            throw error
        }
        handle = environment
    }

    deinit {
        if !guarded.hasFault { mdb_env_close(handle) }
    }

    /// Adds an entry. Those of one database come in the order of their keys.
    func append(_ entry: BackupEntry) throws(StorageFailure) {
        if entry.database == .meta {
            let known = UnfinishedStorage.lastKeys + [StorageFormat.hashKey, SharedPlace.key]
            guard known.contains(entry.key) else { throw .refused("there is an entry that nobody knows") }
            meta[entry.key] = entry.value
            return
        }
        pending.append(entry)
        pendingBytes += entry.key.count + entry.value.count
        if pendingBytes >= UnfinishedStorage.bytesPerCommit { try commitPending() }
    }

    /// Writes more entries, in a commit of their own.
    func write(
        _ body: (WriteTransaction, Databases) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        try commitPending()
        let transaction = try WriteTransaction(handle)
        try body(transaction, databases)
        try transaction.commit()
    }

    /// Writes what makes it a storage. `header`: of the backup, whose entries must be what it says.
    func finish(_ header: BackupHeader) throws(StorageFailure) {
        guard let written = meta[Totals.key] else { throw .refused("the backup lacks the totals") }
        let totals = try written.withRawBytes { bytes throws(StorageFailure) in
            try Totals(reading: UnsafeRawBufferPointer(rebasing: bytes[SealedValue.sealBytes...]))
        }
        guard totals.sequence == header.sequence, totals.chainHead == header.chainHead else {
            throw .refused("the totals in the backup are not those that its beginning tells")
        }
        try finish(totals)
    }

    /// Writes what makes it a storage, with these totals.
    func finish(_ totals: Totals) throws(StorageFailure) {
        try commitPending()
        guard let format = meta[StorageFormat.key], let hashKey = meta[StorageFormat.hashKey] else {
            throw .refused("the format or the hash key is missing")
        }
        let transaction = try WriteTransaction(handle)
        try transaction.putBytes(databases.meta, StorageFormat.hashKey, hashKey)
        for key in [SetsVersion.key, SharedPlace.key] {
            if let value = meta[key] { try transaction.putBytes(databases.meta, key, value) }
        }
        try transaction.putBytes(databases.meta, StorageFormat.key, format)
        // The totals count everything but themselves, so only the number of the transaction is another.
        try transaction.put(totals, in: databases.meta)
        try transaction.commit()
    }

    private func commitPending() throws(StorageFailure) {
        guard !pending.isEmpty else { return }
        let transaction = try WriteTransaction(handle)
        for entry in pending {
            try transaction.putBytes(databases[entry.database], entry.key, entry.value, isAppended: true)
        }
        try transaction.commit()
        pending.removeAll(keepingCapacity: true)
        pendingBytes = 0
    }
}
