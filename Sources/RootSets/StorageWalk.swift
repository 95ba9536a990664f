import CLMDB
import Core

/// A walk over everything that is stored, in one snapshot. It checks each value against its seal, the log's chain, and
/// the counts and sums of all databases against the totals. So it also finds what is intact by itself: an entry that is
/// missing or twice there, and a page of an older version of the file. The structure of LMDB's pages was checked before
/// (`PageCheck`).
struct StorageWalk {
    private let environment: StorageEnvironment
    private let transaction: ReadTransaction
    /// Whether the snapshot was begun, and is ended, by somebody else.
    private let isRenewed: Bool
    /// Whether buckets are read that were found intact before.
    private let readsAnew: Bool
    private let names: [DatabaseName]
    private let isInterrupted: () -> Bool
    private let report: (StorageFinding) -> Void
    private let beforeWalk: (DatabaseName) throws(StorageFailure) -> Void
    private let whenWalked: (DatabaseName) -> Void
    private let visit: Visit
    /// Gets an intact entry as it is stored.
    typealias Visit = (
        _ database: DatabaseName, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) throws(StorageFailure) -> Void
    /// The databases in the order of the walk. Those that decide who may do what come first.
    static let order: [DatabaseName] = [.meta, .records, .packed, .large, .log, .mutations]
    /// `nil`: they are damaged.
    private var totals: Totals?
    private var findings = 0
    private var damagedEntries = 0

    // What was counted on the way.
    private var collaborations: UInt64 = 0
    private var roots: UInt64 = 0
    private var largeRoots: (expected: UInt64, found: UInt64) = (0, 0)
    private var logBytes: UInt64 = 0

    /// `isInterrupted` is asked often; when it returns true, the walk ends. `report` gets each finding. `beforeWalk`
    /// gets each database before anything of it is read, `whenWalked` when the walk has left it. `visit` gets each
    /// intact entry, in the order of the walk; what it throws ends the walk. `transaction`: a snapshot that is in use;
    /// `nil` takes the newest one. `readsAnew`: whether buckets are read that were found intact before. `names`: the
    /// databases that are walked over. Without all of them, what is reported at the end means nothing.
    init(
        _ environment: StorageEnvironment, in transaction: ReadTransaction? = nil, readsAnew: Bool = false,
        of names: [DatabaseName] = StorageWalk.order, isInterrupted: @escaping () -> Bool,
        report: @escaping (StorageFinding) -> Void,
        beforeWalk: @escaping (DatabaseName) throws(StorageFailure) -> Void = { _ in },
        whenWalked: @escaping (DatabaseName) -> Void = { _ in }, visit: @escaping Visit = { _, _, _ in }
    ) throws(StorageFailure) {
        self.environment = environment
        isRenewed = transaction != nil
        self.readsAnew = readsAnew
        self.names = names
        self.transaction = if let transaction { transaction } else { try ReadTransaction(environment) }
        self.isInterrupted = isInterrupted
        self.report = report
        self.beforeWalk = beforeWalk
        self.whenWalked = whenWalked
        self.visit = visit
    }

    /// Walks over everything. Returns false when it was interrupted.
    mutating func run() throws(StorageFailure) -> Bool {
        guard try walkAll() else { return false }
        // The snapshot is not in use any more: a writer that has waited for this finds the pages behind it free.
        if let last = names.last { whenWalked(last) }
        return true
    }

    private mutating func walkAll() throws(StorageFailure) -> Bool {
        if !isRenewed { try transaction.renew() }
        defer { if !isRenewed { transaction.reset() } }
        do throws(StorageFailure) {
            totals = try transaction.untrustedTotals()
        } catch {
            find(
                .totals, "the totals (\(error.action))",
                "nobody can tell whether anything is missing or out of date, so nothing is answered",
                distrusting: DatabaseName.allCases)
        }
        for name in names {
            try beforeWalk(name)
            guard try walk(environment.databases[name]) else { return false }
            if name != names.last { whenWalked(name) }
        }
        compareTotals()
        return true
    }

    private mutating func find(
        _ kind: StorageFinding.Kind, _ what: String, _ meaning: String, distrusting databases: [DatabaseName] = []
    ) {
        findings += 1
        // What can't be listed any more still counts.
        guard findings <= Limits.storageFindingsMax || !databases.isEmpty else { return }
        report(StorageFinding(kind: kind, distrusted: databases, what: what, meaning: meaning))
    }

    /// Walks over one database. Returns false when it was interrupted.
    private mutating func walk(_ database: Database) throws(StorageFailure) -> Bool {
        let owner = try ReadCursor(transaction, database)
        var tally = DatabaseTally()
        var damaged = DatabaseTally()
        var key = MDB_val()
        var value = MDB_val()
        var last: UnsafeRawBufferPointer?
        var previous = totals?.chainStart
        var count = 0
        var code = mdb_cursor_get(owner.handle, &key, &value, MDB_FIRST)
        while code == MDB_SUCCESS {
            count += 1
            if count % 64 == 1, isInterrupted() { return false }
            let keyBytes = UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size)
            let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
            guard environment.holds(keyBytes), environment.holds(bytes) else {
                throw .damaged("an entry of the database \(database.name) is outside of the file")
            }
            // Also ends a walk that a damaged tree would lead in a circle.
            if let last, !database.isAscending(last, keyBytes) {
                find(
                    .order, database.shown(keyBytes), "it is not in its place, so searches may miss it and others",
                    distrusting: [database.name])
                return true
            }
            last = keyBytes
            let isCounted =
                database.name != .meta || !keyBytes.elementsEqual(Totals.key) && !ListReserve.holds(keyBytes)
            if let sealed = checked(bytes, at: keyBytes, in: database) {
                if isCounted { tally.add(sealed.checksum) }
                note(sealed, keyBytes, in: database, &previous)
                try visit(database.name, keyBytes, bytes)
            } else if isCounted {
                damaged.add(SealedValue(bytes)?.checksum ?? 0)
                previous = nil
                let isInPlace = SealedValue(bytes)?.isOfKey(seed: database.seed(of: keyBytes)) ?? false
                // Searches for the key that it had miss it, and nobody knows which key that was.
                find(
                    .entry, database.shown(keyBytes), database.meaningOfDamage,
                    distrusting: isInPlace ? [] : [database.name])
            }
            code = mdb_cursor_get(owner.handle, &key, &value, MDB_NEXT)
        }
        if code != MDB_NOTFOUND {
            find(
                .reading, "the database \(database.name)",
                "the rest of it can't be read (\(String(cString: mdb_strerror(code)))): \(database.meaningOfDamage)",
                distrusting: [database.name])
            return true
        }
        damagedEntries += Int(truncatingIfNeeded: damaged.count)
        compare(tally, damaged, in: database)
        if database.name == .log, let totals, damaged.count == 0, previous != totals.chainHead {
            find(.chain, "the end of the log", "the last changes are missing or out of date", distrusting: [.log])
        }
        return true
    }

    /// Compares the tally of the intact and of the damaged entries with the totals. The seal of a damaged entry may be
    /// intact: if so, the sum shows that nothing but that entry is damaged.
    private mutating func compare(_ tally: DatabaseTally, _ damaged: DatabaseTally, in database: Database) {
        guard let expected = totals?.tallies[database.name] else { return }
        var all = tally
        all += damaged
        guard all != expected else { return }
        let difference =
            all.count == expected.count
            ? "some of its \(all.count) entries are not those that were written last"
            : "it has \(all.count) entries, and \(expected.count) were written"
        find(
            .count, "the database \(database.name)",
            "\(difference), so all of it is refused: \(database.meaningOfDamage)", distrusting: [database.name])
    }

    private func checked(
        _ bytes: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer, in database: Database
    ) -> SealedValue? {
        switch database.name {
        case .packed, .large:
            if readsAnew {
                environment.checkedBuckets.readAnew(bytes, at: key, in: database)
            } else {
                environment.checkedBuckets.genuine(bytes, at: key, in: database)
            }
        case .log, .mutations, .records, .meta: database.genuine(bytes, at: key)
        }
    }

    /// Counts what is in an intact value. `previous`: the checksum of the log's record before.
    private mutating func note(
        _ sealed: SealedValue, _ key: UnsafeRawBufferPointer, in database: Database, _ previous: inout UInt64?
    ) {
        switch database.name {
        case .packed:
            do throws(StorageFailure) {
                let bucket = try PackedBucket(sealed.contents)
                for index in 0..<bucket.count {
                    let record = try bucket.record(index)
                    collaborations += 1
                    roots += UInt64(record.rootCount)
                    if record.isLarge { largeRoots.expected += UInt64(record.rootCount) }
                }
            } catch {
                find(.entry, database.shown(key), database.meaningOfDamage)
            }
        case .large: largeRoots.found += UInt64(sealed.contents.count / Digest.byteCount)
        case .log:
            logBytes += LogRecord.logBytes(sealed)
            let isNext = (try? LogRecord.previous(in: sealed.contents)) == previous
            if previous != nil, !isNext {
                find(
                    .chain, database.shown(key), "the change before it is damaged, missing or out of date",
                    distrusting: [.log])
            }
            previous = sealed.checksum
        case .mutations, .records, .meta: break
        }
    }

    private mutating func compareTotals() {
        // A damaged entry is missing in every count.
        guard let totals, damagedEntries == 0 else { return }
        func compare(_ what: String, _ found: UInt64, _ expected: UInt64) -> String? {
            found == expected ? nil : "there are \(found) \(what), and the totals count \(expected)"
        }
        let differences = [
            compare("collaborations", collaborations, totals.collaborations),
            compare("root hashes", roots, totals.roots),
            compare("root hashes in buckets", largeRoots.found, largeRoots.expected),
            compare("bytes of the log", logBytes, totals.logValueBytes),
        ].compactMap { $0 }
        for difference in differences {
            find(
                .totals, "the totals", "\(difference), so sets are incomplete or out of date",
                distrusting: [.packed, .large])
        }
    }
}

extension Database {
    /// Whether `next` is a key behind `key`.
    fileprivate func isAscending(_ key: UnsafeRawBufferPointer, _ next: UnsafeRawBufferPointer) -> Bool {
        guard name == .packed else { return key.isBelow(next) }
        guard key.count == 8, next.count == 8 else { return false }
        return key.loadUnaligned(as: UInt64.self) < next.loadUnaligned(as: UInt64.self)
    }

    /// What damage in the database means, and for whom.
    fileprivate var meaningOfDamage: String {
        switch name {
        case .packed: "nobody is let into the collaborations of that bucket, and their sets can't be changed"
        case .large: "nobody whose root hash is in that bucket is let in, and the set can't be changed"
        case .log: "followers of the log and repeated changes get an error"
        case .mutations: "a repeated change gets an error, or would be applied again"
        case .records: "participants, grants, notices or principals of that record are refused"
        case .meta: "the storage can't be opened, or can't be changed"
        }
    }
}
