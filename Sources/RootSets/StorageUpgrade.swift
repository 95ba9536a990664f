import Core

/// Turns data of format 1 into format 2: seals each value, chains the log, and counts and sums everything.
///
/// It goes through the databases in steps of one transaction each, so that it needs little room. A step notes how far
/// it came; after a crash the next start continues there. From the first step on an older version refuses the data.
enum StorageUpgrade {
    static let key = Array("upgrade".utf8)
    static let entriesPerStep = 1024
    static let bytesPerStep = 4 << 20

    /// The databases in the order in which they are upgraded.
    private static let order: [DatabaseName] = [.packed, .large, .log, .mutations, .records]

    /// How far an upgrade came: so many databases are done (1), and of the next one all keys up to the rest of the
    /// bytes.
    private struct Progress {
        var done = 0
        var last: [UInt8] = []

        init() {}

        init(reading contents: UnsafeRawBufferPointer) throws(StorageFailure) {
            guard let first = contents.first, first < order.count else {
                throw .damaged("the note how far an upgrade came is damaged")
            }
            (done, last) = (Int(first), Array(contents.dropFirst()))
        }

        var bytes: [UInt8] { [UInt8(done)] + last }
    }

    /// Seals what `meta` has. `meta` must have format 1.
    static func begin(_ databases: Databases, _ transaction: WriteTransaction) throws(StorageFailure) {
        let meta = databases.meta
        var totals = Totals()
        if let value = try transaction.bytes(meta, Totals.key) { totals = try Totals(readingFormat1: value) }
        guard let hashKey = try transaction.bytes(meta, StorageFormat.hashKey).map({ Array($0) }), hashKey.count == 16
        else { throw .damaged("the hash key is missing or damaged") }
        // The values of format 1 have no seals, so they are overwritten as if they were not there.
        try transaction.put(meta, StorageFormat.hashKey, hashKey, version: 0, isNew: true)
        if let value = try transaction.bytes(meta, SetsVersion.key) {
            let version = try SetsVersion(reading: value)
            try transaction.put(meta, SetsVersion.key, version.bytes, version: version.sequence, isNew: true)
        }
        try StorageFormat.writeFormat(databases, transaction)
        try transaction.put(meta, key, Progress().bytes, version: totals.sequence, isNew: true)
        try transaction.put(totals, in: meta)
    }

    /// Does the steps that are left. `stepsMax`: stops after so many; for tests.
    static func finish(
        _ databases: Databases, _ environment: OpaquePointer, entriesPerStep: Int = entriesPerStep, stepsMax: Int = .max
    ) throws(StorageFailure) {
        var steps = 0
        while steps < stepsMax {
            steps += 1
            let transaction = try WriteTransaction(environment)
            guard let note = try transaction.get(databases.meta, key) else { return }
            var progress = try Progress(reading: note.contents)
            var totals = try transaction.totals(in: databases.meta)
            let database = databases[order[progress.done]]
            let entries = try transaction.entries(
                of: database, after: progress.last, countMax: entriesPerStep, bytesMax: bytesPerStep)
            for (key, value) in entries {
                try value.withRawBytes { value throws(StorageFailure) in
                    try upgrade(key, value, of: database, transaction, &totals)
                }
            }
            if let last = entries.last {
                progress.last = last.key
            } else {
                let records = totals.sequence + 1 - totals.firstSequence
                guard database.name != .log || totals.tallies[.log].count == records else {
                    throw .damaged("change-log record \(totals.sequence) is missing")
                }
                (progress.done, progress.last) = (progress.done + 1, [])
            }
            let isDone = progress.done == order.count
            if isDone {
                try transaction.delete(databases.meta, key)
            } else {
                try transaction.put(databases.meta, key, progress.bytes, version: totals.sequence)
            }
            try transaction.put(totals, in: databases.meta)
            try transaction.commit()
            if isDone { return }
        }
    }

    private static func upgrade(
        _ key: [UInt8], _ value: UnsafeRawBufferPointer, of database: Database, _ transaction: WriteTransaction,
        _ totals: inout Totals
    ) throws(StorageFailure) {
        let damage = StorageFailure.damaged("an entry of the database \(database.name) is damaged")
        func number(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        }
        var contents = Array(value)
        var version = totals.sequence
        switch database.name {
        case .packed:
            let bucket = try PackedBucket(checking: value)
            for index in 0..<bucket.count { _ = try bucket.record(index) }
        case .large:
            guard value.count % Digest.byteCount == 0 else { throw damage }
        case .log:
            version = totals.firstSequence &+ totals.tallies[.log].count &+ transaction.tallies[.log].count
            guard key == bigEndianBytes(version), version <= totals.sequence else { throw damage }
            contents = withUnsafeBytes(of: totals.chainHead.littleEndian) { Array($0) } + contents
            try contents.withRawBytes { bytes throws(StorageFailure) in
                _ = try LogRecord.decode(bytes, sequence: version)
            }
            totals.logValueBytes += UInt64(SealedValue.sealBytes + contents.count)
        case .mutations:
            guard value.count == 8 else { throw damage }
            version = number(value)
        case .records:
            guard value.count >= 8 else { throw damage }
            version = number(value)
            contents = Array(value.dropFirst(8))
        case .meta: throw damage
        }
        guard version < SealedValue.versionMax else { throw damage }
        let checksum = try transaction.put(database, key, contents, version: version, isNew: true)
        if database.name == .log { totals.chainHead = checksum }
    }
}
