import CLMDB
import Core
import Foundation

/// The format of the stored data. Format 2 seals each value (`SealedValue`), chains the log and sums the checksums up.
/// Data of format 1 is upgraded when it is opened (`StorageUpgrade`). Data of a newer format is refused.
enum StorageFormat {
    static let current: UInt32 = 2
    static let key = Array("format".utf8)
    static let hashKey = Array("hash key".utf8)

    /// Opens the databases of an environment, makes what a new one needs, and upgrades an older one. `random`: gives a
    /// new one its key for hashing names. `upgrades`: false refuses data of an older format. `structure`: what has to
    /// be checked before anything is written.
    static func open(
        _ environment: OpaquePointer, _ trust: DatabaseTrust, _ random: RandomSource = .system, upgrades: Bool,
        _ structure: StructureCheck? = nil
    ) throws(StorageFailure) -> (databases: Databases, nameHash: NameHash) {
        let transaction = try WriteTransaction(environment)
        let databases = try Databases(transaction, trust)
        let meta = databases.meta
        switch try transaction.bytes(meta, key) {
        case nil:
            try structure?.checkRest()
            try make(databases, transaction, random)
        case let value? where value.count == 4:
            let found = UInt32(littleEndian: value.loadUnaligned(as: UInt32.self))
            guard found == 1 else { throw mismatch(found) }
            guard upgrades else { throw noChecksums }
            try structure?.checkRest()
            try StorageUpgrade.begin(databases, transaction)
        default:
            guard let value = try transaction.get(meta, key)?.contents, value.count == 4 else {
                throw .damaged("the format is damaged")
            }
            let found = UInt32(littleEndian: value.loadUnaligned(as: UInt32.self))
            guard found == current else { throw mismatch(found) }
            if let missing = databases.made.first { throw .damaged("the database \(missing) is missing") }
        }
        guard let nameHash = try transaction.get(meta, hashKey).flatMap({ NameHash(key: $0.contents) }) else {
            throw .damaged("the hash key is missing or damaged")
        }
        let isUpgraded = try transaction.bytes(meta, StorageUpgrade.key) == nil
        guard upgrades || isUpgraded else { throw noChecksums }
        if !isUpgraded { try structure?.checkRest() }
        try transaction.commit()
        if !isUpgraded { try StorageUpgrade.finish(databases, environment) }
        return (databases, nameHash)
    }

    /// Checks the format of data that are only read, and reads the key for hashing names.
    static func nameHash(
        _ databases: Databases, reading transaction: OpaquePointer
    ) throws(StorageFailure) -> NameHash {
        func bytes(_ key: [UInt8]) throws(StorageFailure) -> UnsafeRawBufferPointer? {
            var value = MDB_val()
            let code = withMDBValue(key) { mdb_get(transaction, databases.meta.handle, $0, &value) }
            if code == MDB_NOTFOUND { return nil }
            try check(code, "reading the format")
            return UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        }
        func contents(_ key: [UInt8]) throws(StorageFailure) -> UnsafeRawBufferPointer? {
            guard let value = try bytes(key) else { return nil }
            return try key.withRawBytes { key throws(StorageFailure) in try databases.meta.open(value, at: key).contents
            }
        }
        guard let value = try bytes(key) else { throw .damaged("the format is missing") }
        if value.count == 4 {
            let found = UInt32(littleEndian: value.loadUnaligned(as: UInt32.self))
            throw found == 1 ? noChecksums : mismatch(found)
        }
        guard try bytes(StorageUpgrade.key) == nil else { throw noChecksums }
        guard let format = try contents(key), format.count == 4 else { throw .damaged("the format is damaged") }
        let found = UInt32(littleEndian: format.loadUnaligned(as: UInt32.self))
        guard found == current else { throw mismatch(found) }
        guard let nameHash = try contents(hashKey).flatMap({ NameHash(key: $0) }) else {
            throw .damaged("the hash key is missing or damaged")
        }
        return nameHash
    }

    /// Writes what an empty storage has.
    private static func make(
        _ databases: Databases, _ transaction: WriteTransaction, _ random: RandomSource
    ) throws(StorageFailure) {
        for name in DatabaseName.allCases {
            // Data without a format is a storage whose format has vanished.
            guard try transaction.isEmpty(databases[name]) else { throw .damaged("the format is missing") }
        }
        try writeFormat(databases, transaction)
        try transaction.put(databases.meta, hashKey, random.bytes(16), version: 0)
        try transaction.put(Totals(), in: databases.meta)
    }

    static func writeFormat(_ databases: Databases, _ transaction: WriteTransaction) throws(StorageFailure) {
        try transaction.put(
            databases.meta, key, withUnsafeBytes(of: current.littleEndian) { Array($0) }, version: 0, isNew: true)
    }

    private static var noChecksums: StorageFailure {
        StorageFailure(ENOTSUP, "format 1 has no checksums: start the service once, which upgrades the data")
    }

    private static func mismatch(_ found: UInt32) -> StorageFailure {
        StorageFailure(
            MDB_VERSION_MISMATCH, "the data has format \(found), this version reads formats 1 and \(current)")
    }
}
