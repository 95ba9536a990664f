import CLMDB

/// The databases of an environment.
struct Databases: Sendable {
    let packed: Database
    let large: Database
    let log: Database
    let mutations: Database
    let records: Database
    let meta: Database

    /// Those that were made because they were missing.
    private(set) var made: [DatabaseName] = []

    /// Opens the databases, and makes those that are missing.
    init(_ transaction: WriteTransaction, _ trust: DatabaseTrust) throws(StorageFailure) {
        var made: [DatabaseName] = []
        func open(_ name: DatabaseName, flags: CInt = 0) throws(StorageFailure) -> Database {
            var handle: MDB_dbi = 0
            var code = mdb_dbi_open(transaction.handle, name.text, UInt32(flags), &handle)
            if code == MDB_NOTFOUND {
                made.append(name)
                code = mdb_dbi_open(transaction.handle, name.text, UInt32(MDB_CREATE | flags), &handle)
            }
            try check(code, "opening \(name)")
            return Database(name, handle: handle, trust)
        }
        packed = try open(.packed, flags: MDB_INTEGERKEY)
        (large, log) = (try open(.large), try open(.log))
        (mutations, meta) = (try open(.mutations), try open(.meta))
        records = try open(.records)
        self.made = made
    }

    /// Opens the databases in a read transaction, whose commit keeps them open. Throws when one is missing.
    init(reading transaction: OpaquePointer, _ trust: DatabaseTrust) throws(StorageFailure) {
        func open(_ name: DatabaseName) throws(StorageFailure) -> Database {
            var handle: MDB_dbi = 0
            let code = mdb_dbi_open(transaction, name.text, 0, &handle)
            if code == MDB_NOTFOUND { throw .damaged("the database \(name) is missing") }
            try check(code, "opening \(name)")
            return Database(name, handle: handle, trust)
        }
        (packed, large, log) = (try open(.packed), try open(.large), try open(.log))
        (mutations, records, meta) = (try open(.mutations), try open(.records), try open(.meta))
    }

    subscript(name: DatabaseName) -> Database {
        switch name {
        case .packed: packed
        case .large: large
        case .log: log
        case .mutations: mutations
        case .records: records
        case .meta: meta
        }
    }
}
