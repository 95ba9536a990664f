import CLMDB
import CStorageGuard
import Core
import Foundation
import Platform
import Synchronization

/// One LMDB environment: the files of a data directory. Only this process has it open for writing.
///
/// Sendable without the compiler's proof: many threads may use an `MDB_env`, and no field changes after `init`.
final class StorageEnvironment: @unchecked Sendable {
    let handle: OpaquePointer
    let databases: Databases
    let nameHash: NameHash
    let health: StorageHealth
    let trust: DatabaseTrust
    let checkedBuckets: CheckedBuckets
    let directories: BucketDirectories
    let pageBytes: Int
    /// Both are `nil` when the environment is only read. The note is also `nil` when it is missing in an inspection.
    private let lock: DirectoryLock?
    private let mark: CommitMark?
    /// What the note said before.
    private let noted: CommitMark.Contents
    /// Whether there were data when this was opened.
    private let isOld: Bool
    /// What of the file's structure was left for later; `nil` when all of it was checked.
    private let structure: Lock<StructureCheck?>
    /// The meta page that was damaged, and was written anew when this was opened; `nil`: none was.
    private let restored: MetaPages.Place?
    private let heldPages = Lock(HeldPages())
    /// `nil` when there is no table of readers, or one of another layout.
    private let places: ReaderPlaces?
    /// The first read of a process that reads beside a service. It has the mark (`ReaderPlaces`), and is kept while the
    /// storage is opened: as long as its snapshot was not taken back, no later one was either.
    private var claim: Claim?
    /// The most bytes of the data file as configured.
    private let bytesMax: Int
    private let path: String
    private let dataDescriptor: CInt
    /// The table of readers that LMDB has open, if this process writes.
    private let readerTable: FileIdentity?
    /// LMDB's map of the data file; `nil` when the file has pages of another size than the system.
    private var map: CoveredMap?
    /// The newest commit that this process has acknowledged or found. Others that open the storage later share it.
    private let newest: NewestCommit
    /// Signalled when the environment was closed.
    let closing = DispatchSemaphore(value: 0)

    /// Reads that have ended and can begin again. They keep their places in the table of readers: taking one needs a
    /// mutex, which another process keeps if it is stopped in that moment. There are those that the opening has taken,
    /// and those that were needed besides.
    private let idleReaders = Lock<[IdleReader]>([])

    /// The queue on which stale readers are forgotten, and how many calls for that have not ended.
    private let forgetting = DispatchQueue(label: "rootgate.stale-readers")
    private let unfinishedForgetting = Lock(0)
    /// One for the writer, and one for the timer that watches it, when both come at one time. While the queue waits for
    /// the mutex, no more are begun.
    private static let forgettingMax = 2
    private static let forgettingLimit = DispatchTimeInterval.milliseconds(200)

    /// Sendable without the compiler's proof: with MDB_NOTLS, different threads may use a transaction in turn.
    private struct IdleReader: @unchecked Sendable {
        let handle: OpaquePointer
    }

    private typealias Claim = (reader: OpaquePointer, snapshot: Int)

    var packed: Database { databases.packed }
    var large: Database { databases.large }
    var log: Database { databases.log }
    var mutations: Database { databases.mutations }
    var records: Database { databases.records }
    var meta: Database { databases.meta }

    /// Opens the environment in `directory`, and creates it when it is missing. Judges the data file before LMDB does.
    ///
    /// `lock`: the lock of the directory if somebody has it already. `bytesMax`: the largest size of the data file. A
    /// file that was larger already may grow as far as the largest removal needs. `health`: what gets to know of
    /// damage. `newest`: the newest commit that this process knows of. `isInspected`: whether it is only to be checked;
    /// then an older format is refused, and a missing note stays missing. `acceptsLoss`: whether the operator's word is
    /// taken that the newest commit may be gone. `deferring`: the databases the structure of whose trees may be left
    /// for `checkStructure`. Nobody may read one of them or write before. `readers`: reads at one time for which places
    /// in the table of readers are taken now.
    ///
    /// Throws `storageInUse` when another process or object has the environment open, `storageDamaged` when a file is
    /// truncated or damaged, has lost a commit that was acknowledged or has a format that this version does not read,
    /// and `storageFailed` or `storageFull` for all other failures.
    init(
        directory: String, lock held: DirectoryLock? = nil, bytesMax: Int, reserveBytes: Int,
        _ surroundings: StorageSurroundings = StorageSurroundings(), health: StorageHealth = StorageHealth(),
        newest: NewestCommit = NewestCommit(), isInspected: Bool = false, acceptsLoss: Bool = false,
        deferring: [DatabaseName] = [], readers: Int = 0
    ) throws(ServiceError) {
        let lock = if let held { held } else { try DirectoryLock(directory: directory) }
        guard !lock.isRemoved else {
            throw ServiceError(.storageFailed, "\(DirectoryLock.removal): restart the service")
        }
        (self.lock, self.newest) = (lock, newest)
        directories = BucketDirectories(surroundings)
        (path, self.bytesMax) = (directory + "/" + DataFile.fileName, bytesMax)
        let trust = DatabaseTrust(health)
        (self.health, self.trust) = (health, trust)
        checkedBuckets = CheckedBuckets(mapBytes: bytesMax)
        storage_guard_install()
        do throws(StorageFailure) {
            let use = try lock.use()
            isOld = use == .data
            let (mark, contents, judgement) = try StorageEnvironment.judge(
                directory, lock, use, makesNote: !isInspected, acceptsLoss: acceptsLoss, deferring)
            (self.mark, noted) = (mark, contents)
            structure = Lock(judgement?.structure)
            restored = judgement?.restored
        } catch {
            throw error.asServiceError
        }
        var environment: OpaquePointer?
        do throws(StorageFailure) {
            places = try ReaderPlaces(in: directory)
            try check(mdb_env_create(&environment), "making the storage environment")
            guard let environment else { throw StorageFailure(ENOMEM, "making the storage environment") }
            storage_guard_watch(environment)
            let guarded = StorageGuard()
            do throws(StorageFailure) {
                try check(mdb_env_set_mapsize(environment, bytesMax), "setting the map size")
                try check(mdb_env_set_maxdbs(environment, 6), "setting the number of databases")
                try check(mdb_env_set_maxreaders(environment, 1024), "setting the number of readers")
                // NOTLS: the pool hands read transactions to different threads.
                try check(mdb_env_open(environment, directory, UInt32(MDB_NOTLS), 0o600), "opening \(directory)")
                var stale: CInt = 0
                try check(mdb_reader_check(environment, &stale), "clearing stale readers")
                (pageBytes, dataDescriptor) = try StorageEnvironment.checkFile(of: environment)
                (databases, nameHash) = try StorageFormat.open(
                    environment, trust, surroundings.random, upgrades: !isInspected, structure.withLock { $0 })
            } catch {
                // After a fault LMDB's state is unknown: its memory is not touched again.
                if !guarded.hasFault { mdb_env_close(environment) }
                throw error
            }
            handle = environment
            readerTable = StorageEnvironment.readerTable(beside: path)
        } catch {
            throw error.asServiceError
        }
        do throws(StorageFailure) {
            try fitMap(reserveBytes: reserveBytes)
            map = try coveredMap()
            trust.covers(map, of: dataDescriptor)
            try checkSequence()
            // The note says that there are data, so it comes last.
            if !isOld { try StorageEnvironment.makeNamesDurable(in: directory) }
            try noteNewest()
            keepReaders(readers)
        } catch {
            throw error.asServiceError
        }
        lock.markUsed(bytesMax: bytesMax, isFirst: !isOld)
    }

    /// The table of readers as the directory has it; `nil`: the system does not tell, or there is none.
    private static func readerTable(beside path: String) -> FileIdentity? {
        FileIdentity(of: System.folder(of: path) + "/" + ReaderTable.fileName)
    }

    /// Makes the names of a new data directory's files durable, and its own name.
    private static func makeNamesDurable(in directory: String) throws(StorageFailure) {
        try DataFile.makeNamesDurable(in: directory)
        do throws(SystemFailure) {
            try System.synchronizeFolder(of: directory)
        } catch {
            // The folder above may be one that this user may not read, or that can't be made durable. Its owner answers
            // for the names in it.
            guard [EACCES, EPERM, EINVAL, EROFS].contains(error.number) else {
                throw StorageFailure(error.number, "making the name of \(directory) durable")
            }
        }
    }

    /// Opens the environment in `directory` for reading only, beside the process that may have it open. It is not
    /// judged before: what is read is checked, and faults are noticed. Makes and changes no file but LMDB's table of
    /// readers.
    ///
    /// Must not be called in a process that has the same directory open: LMDB's locks belong to the process.
    ///
    /// Throws `storageFailed` when there is no storage or when it has no checksums, `storageDamaged` when it is damaged
    /// or has a format that this version does not read.
    init(reading directory: String) throws(ServiceError) {
        (lock, mark, noted, isOld, restored, readerTable) = (nil, nil, .none, false, nil, nil)
        newest = NewestCommit()
        structure = Lock(nil)
        directories = BucketDirectories(StorageSurroundings())
        path = directory + "/" + DataFile.fileName
        health = StorageHealth()
        trust = DatabaseTrust(health)
        checkedBuckets = CheckedBuckets(mapBytes: 0)
        storage_guard_install()
        var environment: OpaquePointer?
        var (claim, places): (Claim?, ReaderPlaces?)
        do throws(StorageFailure) {
            try ReaderTable.checkNumber(in: directory)
            places = try ReaderPlaces(in: directory)
            try check(mdb_env_create(&environment), "making the storage environment")
            guard let environment else { throw StorageFailure(ENOMEM, "making the storage environment") }
            storage_guard_watch(environment)
            let guarded = StorageGuard()
            do throws(StorageFailure) {
                try check(mdb_env_set_maxdbs(environment, 6), "setting the number of databases")
                try check(mdb_env_set_maxreaders(environment, 1024), "setting the number of readers")
                let flags = UInt32(MDB_NOTLS | MDB_RDONLY)
                let opened = mdb_env_open(environment, directory, flags, 0o600)
                guard opened != MDB_INVALID, opened != MDB_VERSION_MISMATCH else {
                    throw .damaged(
                        "a meta page of the data file is damaged: a start of the service, or rootgate fsck while none "
                            + "runs, writes it anew if it can")
                }
                try check(opened, "opening \(directory)")
                claim = try StorageEnvironment.claim(environment, &places)
                (pageBytes, dataDescriptor) = try StorageEnvironment.checkFile(of: environment)
                var information = MDB_envinfo()
                try check(mdb_env_info(environment, &information), "reading the storage's state")
                // LMDB's own number never becomes smaller.
                let limit = try DirectoryLock.bytesMax(in: directory) ?? fileBytes(dataDescriptor) ?? 0
                bytesMax = min(limit, information.me_mapsize)
                let reader = try StorageEnvironment.beginRead(environment, dataDescriptor, pageBytes)
                do throws(StorageFailure) {
                    databases = try Databases(reading: reader, trust)
                    nameHash = try StorageFormat.nameHash(databases, reading: reader)
                } catch {
                    if !guarded.hasFault { mdb_txn_abort(reader) }
                    throw error
                }
                try check(mdb_txn_commit(reader), "ending a read")
            } catch {
                let isLost = claim.map { places?.holds($0.snapshot) == false } ?? false
                if !guarded.hasFault {
                    claim.map { mdb_txn_abort($0.reader) }
                    mdb_env_close(environment)
                }
                throw isLost ? .awaited("the reading") : error
            }
            (handle, self.claim, self.places) = (environment, claim, places)
        } catch {
            throw error.asServiceError
        }
        do throws(StorageFailure) {
            map = try whileClaimed { () throws(StorageFailure) in try coveredMap() }
        } catch {
            throw error.asServiceError
        }
        trust.covers(map, of: dataDescriptor)
    }

    /// Begins a read whose place says that this process lets go of its snapshots. `places` becomes `nil` when that
    /// place is not in the table.
    private static func claim(
        _ environment: OpaquePointer, _ places: inout ReaderPlaces?
    ) throws(StorageFailure) -> Claim {
        var reader: OpaquePointer?
        try check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &reader), "beginning a read")
        guard let reader else { throw StorageFailure(ENOMEM, "beginning a read") }
        let snapshot = Int(mdb_txn_id(reader))
        if places?.mark(reading: snapshot) == false { places = nil }
        return (reader, snapshot)
    }

    /// Returns what `body` reads while the storage is opened. Throws `givenUp` when a snapshot was taken back.
    func whileClaimed<R>(_ body: () throws(StorageFailure) -> R) throws(StorageFailure) -> R {
        try readWhileHeld("the reading", { claim.map { holds(snapshot: $0.snapshot) } ?? true }, body)
    }

    /// The storage is open. The process keeps its mark, and no snapshot but those of the readings to come.
    func endOpening() {
        if let claim { mdb_txn_reset(claim.reader) }
    }

    /// Begins a read of a commit whose pages lead to the format and the hash key as they should.
    private static func beginRead(
        _ environment: OpaquePointer, _ file: CInt, _ pageBytes: Int
    ) throws(StorageFailure) -> OpaquePointer {
        // The service may write the meta page anew before it is read here, two commits later.
        for _ in 0..<1000 {
            var reader: OpaquePointer?
            try check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &reader), "beginning a read")
            guard let reader else { throw StorageFailure(ENOMEM, "beginning a read") }
            let number = Int(mdb_txn_id(reader))
            do throws(StorageFailure) {
                guard let page = try metaPage(number & 1, of: file, pageBytes),
                    page.transaction == UInt64(clamping: number)
                else {
                    mdb_txn_abort(reader)
                    continue
                }
                let check = try StructureCheck(
                    of: file, fileBytes: fileBytes(file) ?? 0, page,
                    deferring: DatabaseName.allCases.filter { $0 != .meta })
                if let finding = check.finding { throw .damaged("\(finding): restore a backup") }
                return reader
            } catch {
                mdb_txn_abort(reader)
                throw error
            }
        }
        throw .damaged("the meta page of the newest commit can't be read")
    }

    deinit {
        claim.map { mdb_txn_abort($0.reader) }
        for idle in idleReaders.withLock({ $0 }) { mdb_txn_abort(idle.handle) }
        mdb_env_close(handle)
        // Another map may get its addresses.
        map = nil
        closing.signal()
    }

    /// With a smaller limit than before, the data may fill the map. Removals need some pages to begin with.
    private func fitMap(reserveBytes: Int) throws(StorageFailure) {
        let present = try withReader { reader throws(StorageFailure) in try trees(reader) }
        let removal = max(reserveBytes, present.largestRemoval * pageBytes)
        let needed = max(present.all * pageBytes + removal, try highBytes() + reserveBytes)
        if try highBytes() > bytesMax || present.all * pageBytes + removal > bytesMax {
            try check(mdb_env_set_mapsize(handle, needed), "setting the map size")
        }
    }

    /// Judges the files before LMDB opens them. Returns the note of the newest commit, and what was found in the data
    /// file, if there is one.
    private static func judge(
        _ directory: String, _ lock: DirectoryLock, _ use: DirectoryLock.Use, makesNote: Bool, acceptsLoss: Bool,
        _ deferring: [DatabaseName]
    ) throws(StorageFailure) -> (CommitMark?, CommitMark.Contents, DataFile.Judgement?) {
        // LMDB would take a missing or empty data file for a new storage. The loss of the data would go unnoticed.
        let isNoted = try CommitMark.contents(in: directory) != .none
        let isUsed = use == .data || isNoted
        if isUsed {
            var status = stat()
            guard stat(directory + "/" + DataFile.fileName, &status) == 0, status.st_size > 0 else {
                throw .damaged("the data file of \(directory) is missing or empty: restore a backup")
            }
        }
        if !isUsed, makesNote { try DataFile.prepareNew(in: directory, lock, isUnfinished: use == .unfinished) }
        // A note that an earlier use has lost stays missing, so that the next start tells.
        let mark = isNoted || makesNote || use != .data ? try CommitMark(directory: directory) : nil
        let contents = try mark?.read() ?? .none
        guard contents != .acceptance || acceptsLoss else {
            throw .damaged(
                "\(CommitMark.fileName) has the word \(CommitMark.acceptance), which a start of the service takes")
        }
        guard contents != .unknown else {
            throw .damaged(
                "\(CommitMark.fileName) is not what was written: whether the newest commit is there can't be told; "
                    + MetaPages.remedy)
        }
        let judgement = try DataFile.withFile(in: directory) { file throws(StorageFailure) in
            try file.judge(contents, deferring: deferring)
        }
        try ReaderTable.prepare(in: directory)
        return (mark, contents, judgement)
    }

    /// Checks the structure of a database if that was left for later, and with the last one the list of free pages.
    ///
    /// Throws `damaged` when a page is damaged, and another failure when the file can't be read.
    func checkStructure(of name: DatabaseName) throws(StorageFailure) {
        guard let check = structure.withLock({ $0 }) else { return }
        try check.check(name)
        // Its map is as large as the file.
        if check.isDone { structure.withLock { $0 = nil } }
    }

    /// Ends a check of the structure soon.
    func stopChecking() { structure.withLock { $0 }?.stop() }

    /// Throws when the storage shares a log and is to be used without one, or has changes of its own and is to share
    /// one: it would come to differ from the others.
    func checkSharing(_ isShared: Bool) throws(ServiceError) {
        do throws(StorageFailure) {
            let hasPlace = try withReader { reader throws(StorageFailure) -> Bool in
                var value = MDB_val()
                let code = withMDBValue(SharedPlace.key) { mdb_get(reader, meta.handle, $0, &value) }
                if code == MDB_NOTFOUND { return false }
                try check(code, "reading the place in the shared log")
                return true
            }
            if hasPlace, !isShared {
                throw .mismatched(
                    "the storage is of a cluster, so it can't be used alone: start the service with the cluster's "
                        + "--cluster and --cluster-name")
            }
            if !hasPlace, isShared, let lastSequence, lastSequence > 0 {
                throw .mismatched("the storage has changes of its own, so it can't share a log with others")
            }
        } catch {
            throw error.asServiceError
        }
    }

    // MARK: Faults

    /// Why nothing may be answered from what was read in place; `nil` when every page could be read.
    var fault: StorageFailure? { map?.fault }

    var hasFault: Bool { map?.hasFault ?? false }

    /// Why nothing may be answered: the file was cut. `nil` when it was not.
    var cut: StorageFailure? { trust.cut }

    /// Whether LMDB takes no more transactions, because a meta page could not be written.
    var hasPanicked: Bool {
        do throws(StorageFailure) {
            end(try beginReader())
            return false
        } catch {
            return error.isPanic
        }
    }

    /// Finds LMDB's map of the file by a value in it: each page begins with its number.
    private func coveredMap() throws(StorageFailure) -> CoveredMap? {
        guard pageBytes == sysconf(CInt(_SC_PAGESIZE)) else { return nil }
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        let start = try withReader { reader throws(StorageFailure) -> UnsafeRawPointer? in
            var value = MDB_val()
            let code = withMDBValue(Totals.key) { mdb_get(reader, meta.handle, $0, &value) }
            // Damage that the check of the start finds, too.
            if code == MDB_NOTFOUND { return nil }
            try check(code, "reading the totals")
            guard let address = value.mv_data else { return nil }
            let page = UnsafeRawPointer(bitPattern: UInt(bitPattern: address) / UInt(pageBytes) * UInt(pageBytes))
            guard let page, case let number = page.load(as: Int.self), number >= 2, number <= information.me_last_pgno
            else { throw .damaged("a page says that it is another") }
            return page - number * pageBytes
        }
        guard let start else { return nil }
        return CoveredMap(UnsafeRawBufferPointer(start: start, count: information.me_mapsize))
    }

    /// Why changes must not be acknowledged: the file that is written is not where the next start looks for it. `nil`
    /// when it is, or when the system does not tell: then nothing speaks against it.
    var displacement: StorageFailure? {
        if lock?.isRemoved == true { return .failed(DirectoryLock.removal) }
        // Other processes would read snapshots of which this one does not know.
        if let readerTable, StorageEnvironment.readerTable(beside: path) != readerTable, access(path, F_OK) == 0 {
            return .failed("the file \(ReaderTable.fileName) was removed or replaced")
        }
        let failure = StorageFailure.failed("the data file was removed or replaced")
        var (written, found) = (stat(), stat())
        if fstat(dataDescriptor, &written) != 0 { return nil }
        if written.st_nlink == 0 { return failure }
        if stat(path, &found) != 0 { return errno == ENOENT || errno == ENOTDIR ? failure : nil }
        return found.st_ino == written.st_ino && found.st_dev == written.st_dev ? nil : failure
    }

    // MARK: The newest commit

    /// The last sequence of the change log in the newest commit; `nil` when the totals can't be read.
    private var lastSequence: UInt64? { (try? lastCommit())?.sequence }

    /// The number of the newest commit by LMDB's table of readers, and the last sequence of its change log; that is
    /// `nil` when the totals can't be read.
    private func lastCommit() throws(StorageFailure) -> (number: Int, sequence: UInt64?) {
        try withReader { reader throws(StorageFailure) -> (number: Int, sequence: UInt64?) in
            let number = Int(mdb_txn_id(reader))
            var value = MDB_val()
            guard withMDBValue(Totals.key, { mdb_get(reader, meta.handle, $0, &value) }) == MDB_SUCCESS,
                let sealed = SealedValue(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)),
                sealed.isGenuine(seed: Totals.key.withUnsafeBytes { meta.seed(of: $0) }),
                let totals = try? Totals(reading: sealed.contents)
            else { return (number, nil) }
            return (number, totals.sequence)
        }
    }

    /// Throws `damaged` when the data end with an earlier change than one that was acknowledged.
    private func checkSequence() throws(StorageFailure) {
        guard case .note(let note) = noted, let present = lastSequence, present < note.sequence else { return }
        throw .damaged(
            "change \(note.sequence) was acknowledged, and the data end with change \(present): \(MetaPages.remedy)")
    }

    /// What may be lost, because the operator has accepted that or because there is no note, as a line for the log;
    /// `nil` when nothing is.
    var possibleLoss: String? {
        if noted == .none, isOld {
            return
                "\(CommitMark.fileName) was missing or empty, so nothing tells whether the data file has its "
                + "newest commit"
        }
        guard noted == .acceptance else { return nil }
        let end = lastSequence.map { "goes on behind change \($0)" } ?? "does not tell its last change"
        return
            "changes may be lost: \(CommitMark.fileName) said \(CommitMark.acceptance), and the storage "
            + end
    }

    /// What was written anew before the file was opened, as a line for the log; `nil` when nothing was.
    var restoration: String? {
        switch restored {
        case nil: nil
        case .newest:
            "the newest meta page of \(DataFile.fileName) was damaged, and was written anew from its copy in "
                + "\(CommitMark.fileName): no change is missing, but see to the disk"
        case .other:
            "the older meta page of \(DataFile.fileName) was damaged, or half written when the power went, and was "
                + "written anew: no change is missing"
        }
    }

    /// Makes what is in the file durable, and notes its newest commit. A process that was killed may have left a commit
    /// that the disk does not have yet.
    private func noteNewest() throws(StorageFailure) {
        guard fsync(dataDescriptor) == 0 else { throw StorageFailure(errno, "making the data durable") }
        let pages = (try metaPage(0), try metaPage(1))
        guard let page = [pages.0, pages.1].compactMap({ $0 }).max(by: { $0.transaction < $1.transaction }) else {
            throw .damaged("both meta pages of the data file are damaged")
        }
        let known = newest.number
        guard page.transaction >= UInt64(known) else {
            throw .damaged(
                "commit \(known) was acknowledged, and the data file ends with \(page.transaction): "
                    + MetaPages.remedy)
        }
        let named = (try lastCommit()).number
        guard named <= Int(page.transaction) else {
            throw .conflicting(
                "LMDB's table of readers still names commit \(named), which is not there: end the backup or check that "
                    + "another process makes, so that the table is made anew")
        }
        newest.note(Int(page.transaction))
        // Damaged totals do not take back what was acknowledged.
        var acknowledged: UInt64 = 0
        if case .note(let note) = noted { acknowledged = note.sequence }
        mark?.write(CommitMark.Note(page, sequence: lastSequence ?? acknowledged))
        mark?.settle()
        // The word holds for one start.
        if noted == .acceptance, try mark?.read() == .acceptance {
            throw .failed("\(CommitMark.fileName) can't be written")
        }
    }

    /// Notes a commit that is durable, before it is acknowledged. If it can't be written, the note stays behind.
    ///
    /// Throws a fault when the commit's meta page can't be read: the disk may have lost it.
    func note(commit transaction: Int) throws(StorageFailure) {
        let found: MetaPage?
        do throws(StorageFailure) {
            found = try metaPage(transaction & 1)
        } catch {
            throw .failed("the data file can't be read after a commit, \(error.text)")
        }
        let (last, sequence) = (try? lastCommit()) ?? (transaction, nil)
        // Nothing was written, so LMDB has made no commit of it.
        guard last >= transaction else { return }
        // LMDB writes only a part of the page. The rest may have been damaged before, and the next start would not take
        // the page.
        guard let page = found, page.transaction == UInt64(transaction),
            page.fault(fileBytes: fileBytes(dataDescriptor) ?? 0) == nil
        else { throw .failed("the meta page of commit \(transaction) is damaged") }
        if let fault = fault(ofSnapshot: transaction, known: newest.number) { throw fault }
        mark?.write(CommitMark.Note(page, sequence: sequence ?? 0))
        newest.note(transaction)
    }

    /// Why the snapshot of a commit can't be what was committed: a file of the storage was written over. Else `nil`.
    ///
    /// `known`: the newest commit that was known before the snapshot was taken.
    @inline(__always)
    func fault(ofSnapshot number: Int, known: Int) -> StorageFailure? {
        if number >= known, let map, isOn(number, { map.number(at: $0 * pageBytes + MetaPage.transactionOffset) }) {
            return nil
        }
        return doubt(ofSnapshot: number, known: known)
    }

    /// Whether the two meta pages name a commit and the one before, or later ones: both may have been written anew
    /// since. `written`: the number on a meta page.
    @inline(__always)
    private func isOn(_ number: Int, _ written: (_ slot: Int) -> UInt64?) -> Bool {
        guard let own = written(number & 1), let other = written(1 - number & 1) else { return false }
        return Int(clamping: own) >= number && Int(clamping: other) >= number - 1
    }

    private func doubt(ofSnapshot number: Int, known: Int) -> StorageFailure? {
        guard number >= known else {
            return .failed(
                "commit \(known) is the newest one, and LMDB's table of readers says \(number): it was written over")
        }
        for attempt in 0..<3 {
            // A page may be written at this moment.
            if attempt > 0 { usleep(1000) }
            // Without a map the file is read.
            let isThere = isOn(number) { slot in
                if let map { return map.number(at: slot * pageBytes + MetaPage.transactionOffset) }
                return try? metaPage(slot)?.transaction
            }
            if isThere { return nil }
        }
        return .failed("the data file is older than commit \(number): it was written over, or the disk has lost writes")
    }

    /// Renews a transaction and returns its meta page. Two later commits may write that page anew meanwhile: then it is
    /// tried again.
    func renew(_ transaction: ReadTransaction) throws(StorageFailure) -> MetaPage {
        for _ in 0..<1000 {
            try transaction.renew()
            let number = transaction.number
            do throws(StorageFailure) {
                if let page = try metaPage(number & 1), page.transaction == UInt64(number) { return page }
            } catch {
                transaction.reset()
                throw error
            }
            transaction.reset()
        }
        throw .damaged("the meta page of the newest commit can't be read")
    }

    /// What is wrong with the structure of the pages of a snapshot with that meta page; `nil` when nothing is.
    /// `isStopped` is asked often; when it returns true, the check goes no further, and what it says means nothing.
    func structureFault(
        of page: MetaPage, isStopped: @escaping @Sendable () -> Bool
    ) throws(StorageFailure) -> String? {
        try StructureCheck(
            of: dataDescriptor, fileBytes: fileSize, page, deferring: [], isStopped: isStopped
        ).finding
    }

    /// Whether bytes are where the data file is mapped.
    func holds(_ bytes: UnsafeRawBufferPointer) -> Bool { map?.holds(bytes) ?? true }

    /// The newest commit that was acknowledged or found.
    var newestCommit: Int { newest.number }

    /// Makes the note durable. It may wait for the disk. Returns false when that fails, and when the note could not be
    /// written.
    func syncNote() -> Bool { mark.map { !$0.isBehind && $0.sync() } ?? true }

    /// Forgets readers of other processes that have ended without saying so: what they read could not be used again.
    ///
    /// To forget one, LMDB needs the mutex of the table of readers. A process that was stopped while it took a place
    /// has that mutex. So another thread waits for it. Returns false when that takes too long, or fails: then some may
    /// not be forgotten.
    @discardableResult
    func forgetStaleReaders() -> Bool {
        let begins = unfinishedForgetting.withLock { count in
            guard count < StorageEnvironment.forgettingMax else { return false }
            count += 1
            return true
        }
        guard begins else { return false }
        let isOver = DispatchSemaphore(value: 0)
        // Weakly: once this call has returned, the queue keeps the environment only while it waits for the mutex.
        forgetting.async { [weak self] in
            let code = self?.clearStalePlaces()
            if code == MDB_SUCCESS { isOver.signal() }
        }
        return isOver.wait(timeout: .now() + StorageEnvironment.forgettingLimit) == .success
    }

    private func clearStalePlaces() -> CInt {
        defer { unfinishedForgetting.withLock { $0 -= 1 } }
        var stale: CInt = 0
        return mdb_reader_check(handle, &stale)
    }

    /// A meta page as it stands in the file; `nil` when it is none. Throws when it can't be read.
    func metaPage(_ slot: Int) throws(StorageFailure) -> MetaPage? {
        try StorageEnvironment.metaPage(slot, of: dataDescriptor, pageBytes)
    }

    private static func metaPage(
        _ slot: Int, of file: CInt, _ pageBytes: Int
    ) throws(StorageFailure) -> MetaPage? {
        let bytes = try readBytes(
            of: file, at: slot * pageBytes, bytesMax: MetaPage.byteCount, "reading the meta pages")
        return bytes.count == MetaPage.byteCount ? MetaPage(bytes, slot: slot) : nil
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
        guard (0..<1 << 40).contains(information.me_last_pgno), (0..<Int.max).contains(information.me_last_txnid) else {
            throw .damaged("the newest meta page can't be used")
        }
        let needed = (information.me_last_pgno + 1) * Int(statistics.ms_psize)
        guard let present = fileBytes(descriptor), present >= needed else {
            throw .damaged("the data file is shorter than its contents (\(needed) bytes)")
        }
        return (Int(statistics.ms_psize), descriptor)
    }

    /// Bytes of the file up to the last page that was ever used.
    private func highBytes() throws(StorageFailure) -> Int {
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        return (information.me_last_pgno + 1) * pageBytes
    }

    /// Bytes of the pages that hold data, as the transaction sees them.
    func usedBytes(_ reader: OpaquePointer) throws(StorageFailure) -> Int { try trees(reader).all * pageBytes }

    /// The pages of the data file as of the last commit. `reserveBytes`: what additions leave for removals. `logBytes`:
    /// how large the change log may become.
    func room(reserveBytes: Int, logBytes: Int) throws(StorageFailure) -> StorageRoom {
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        let (present, recent) = try withReader { reader throws(StorageFailure) in
            (try trees(reader), try pagesFreed(reader, by: information.me_last_txnid))
        }
        return StorageRoom(
            used: information.me_last_pgno + 1, recent: recent, capacity: bytesMax / pageBytes,
            reserve: max(reserveBytes / pageBytes, StorageRoom.freeListPages(of: present.all)),
            logMax: logBytes / pageBytes, trees: present)
    }

    /// The growth by a change, as of the last commit. It is none for what is an addition anyway.
    func growth(by change: Change) throws(StorageFailure) -> RecordGrowth {
        var growth = RecordGrowth()
        guard case .edit(let edit) = change, !edit.needsSpace, edit.records.contains(where: { $0.value != nil }) else {
            return growth
        }
        try withReader { reader throws(StorageFailure) in
            for record in edit.records {
                // An edit with another key is refused when it is applied.
                guard let value = record.value, (1...Limits.recordKeyBytesMax).contains(record.key.count) else {
                    continue
                }
                var present = MDB_val()
                let code = withMDBValue(record.key) { mdb_get(reader, records.handle, $0, &present) }
                if code != MDB_NOTFOUND { try check(code, "reading a record's length") }
                growth.add(value, insteadOf: code == MDB_NOTFOUND ? 0 : present.mv_size)
            }
        }
        return growth
    }

    /// The pages of the trees with what a transaction has changed in them so far.
    func trees(in transaction: WriteTransaction) throws(StorageFailure) -> StorageTrees {
        guard let handle = transaction.handle else { throw StorageFailure(MDB_BAD_TXN, "counting pages") }
        return try trees(handle)
    }

    /// Who reads the oldest snapshot, anywhere and in another process; `nil` when nobody does. This process reads no
    /// snapshot for long, but for those that it gives up when they cost too much (`SnapshotCost`).
    private func oldestReaders() throws(StorageFailure) -> (anywhere: SnapshotReader?, elsewhere: SnapshotReader?) {
        var oldest: (anywhere: SnapshotReader?, elsewhere: SnapshotReader?)
        let code = withUnsafeMutablePointer(to: &oldest) { oldest in
            mdb_reader_list(
                handle,
                { line, context in
                    let oldest = context?.assumingMemoryBound(
                        to: (anywhere: SnapshotReader?, elsewhere: SnapshotReader?).self)
                    guard let oldest, let line, let reader = SnapshotReader(line: String(cString: line)) else {
                        return 0
                    }
                    if reader.snapshot < oldest.pointee.anywhere?.snapshot ?? .max { oldest.pointee.anywhere = reader }
                    if reader.process != Int(getpid()), reader.snapshot < oldest.pointee.elsewhere?.snapshot ?? .max {
                        oldest.pointee.elsewhere = reader
                    }
                    return 0
                }, oldest)
        }
        // What the callback returns is the result, and it is never negative.
        guard code >= 0 else { throw StorageFailure(code, "listing the storage's readers") }
        return oldest
    }

    /// Waits until nobody reads an older snapshot than that of the last commit: then the next commit may use what the
    /// one before the last has freed. Returns false when somebody still reads one after `limit`, which may be exceeded
    /// by one `forgettingLimit`.
    func waitForReaders(_ limit: Duration) throws(StorageFailure) -> Bool {
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        let end = ContinuousClock.now + limit
        while true {
            let oldest = try oldestReaders().anywhere
            guard let oldest, oldest.snapshot < information.me_last_txnid else { return true }
            guard ContinuousClock.now < end else { return false }
            forgetStaleReaders()
            usleep(1000)
        }
    }

    /// Takes all snapshots that are older than the last commit back from other processes that let go of them. Returns
    /// which processes have lost one.
    func takeBackSnapshots() throws(StorageFailure) -> [Int] {
        guard let last = try snapshotsToTakeBack() else { return [] }
        return places?.takeBack(before: last) ?? []
    }

    /// Whether there are such ones.
    func hasSnapshotsToTakeBack() throws(StorageFailure) -> Bool { try snapshotsToTakeBack() != nil }

    /// Before which commit there are snapshots that can be taken back; `nil`: there are none.
    private func snapshotsToTakeBack() throws(StorageFailure) -> Int? {
        // Another program may have got the number of a process that has ended. Until that is known, nothing is taken
        // back.
        guard forgetStaleReaders() else { return nil }
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        // LMDB reads the table first: it can't be read if its file was cut. While another program reads an older
        // snapshot, the end of a newer reading makes no room.
        guard let oldest = try oldestReaders().elsewhere, oldest.snapshot < information.me_last_txnid,
            places?.letsGo(oldest.process) == true
        else { return nil }
        return information.me_last_txnid
    }

    /// Whether nobody has taken this snapshot back, which this process reads.
    func holds(snapshot: Int) -> Bool { places?.holds(snapshot) ?? true }

    /// Whether a writer waits until nobody reads this snapshot (`ListReserve.awaitReaders`). A number of a transaction
    /// that is not there says nothing: it is damaged, or the storage is a compacted copy, whose numbers begin anew.
    func isAwaited(_ snapshot: Int) throws(StorageFailure) -> Bool {
        try withReader { reader throws(StorageFailure) in
            var value = MDB_val()
            let code = withMDBValue(ListReserve.awaitedKey) { mdb_get(reader, meta.handle, $0, &value) }
            if code == MDB_NOTFOUND { return false }
            try check(code, "reading which snapshots are awaited")
            guard value.mv_size == MemoryLayout<UInt64>.size, let bytes = value.mv_data else { return false }
            let number = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
            return snapshot < number && number <= mdb_txn_id(reader)
        }
    }

    /// Who held pages of the storage when it last came near the reserve; `nil`: nobody.
    var holder: SnapshotReader? { heldPages.withLock { $0.holder } }

    /// Counts the pages that others hold, if the file may grow into the reserve because of those.
    func countHeld(_ need: PageNeed, in room: inout StorageRoom) throws(StorageFailure) {
        guard !room.knowsHeld, room.mayReachReserve(need) else { return }
        let reader = try oldestReaders().elsewhere
        let held = try heldPages.withLock { held throws(StorageFailure) in
            held.note(reader)
            guard reader != nil else { return held }
            let before = held.last
            try withReader { reader throws(StorageFailure) in
                try visitFreed(reader, from: MDB_LAST, MDB_PREV) { (freedBy: Int, pages) -> Bool in
                    held.add(pages.count, freedBy: freedBy, before: before)
                }
            }
            return held
        }
        room.hold(held)
    }

    /// Makes the room ready to be asked for a mutation with this need: counts what others hold of it, and what the disk
    /// has.
    func prepare(_ room: inout StorageRoom, for need: PageNeed) throws(StorageFailure) {
        try countHeld(need, in: &room)
        try reserveBlocks(upTo: room.wanted(for: need), in: &room)
        // The reserve may have come nearer.
        try countHeld(need, in: &room)
    }

    /// The same for a mutation that nobody makes now. A disk that says that it has too little is left what it has.
    func prepareToAsk(_ room: inout StorageRoom, for need: PageNeed) throws(StorageFailure) {
        try countHeld(need, in: &room)
        let wanted = min(room.wanted(for: need), room.capacity)
        if let present = fileBytes(dataDescriptor).map({ $0 / pageBytes }), let free = diskBytesFree,
            present < wanted, free / pageBytes < wanted - present
        {
            return try noteBlocks(&room)
        }
        try prepare(&room, for: need)
    }

    /// The runs of free pages that the next commit may take. Reads the whole list of free pages.
    func freeRuns() throws(StorageFailure) -> FreeRuns {
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        let held = try oldestReaders().anywhere?.snapshot ?? .max
        return try withReader { reader throws(StorageFailure) in
            var runs = FreeRuns()
            try visitFreed(reader, from: MDB_FIRST, MDB_NEXT) { (transaction: Int, pages) -> Bool in
                guard transaction < min(information.me_last_txnid, held) else { return false }
                runs.append(pages)
                return true
            }
            return runs
        }
    }

    /// How many neighbouring pages the next commit finds if it reads so many lists of free pages; of very many pages,
    /// only the first ones are looked at.
    func longestFreeRun(lists count: Int) throws(StorageFailure) -> Int {
        var information = MDB_envinfo()
        try check(mdb_env_info(handle, &information), "reading the storage's state")
        let held = try oldestReaders().anywhere?.snapshot ?? .max
        var (lists, found) = ([[Int]](), 0)
        try withReader { reader throws(StorageFailure) in
            try visitFreed(reader, from: MDB_FIRST, MDB_NEXT) { (transaction: Int, pages) -> Bool in
                guard transaction < min(information.me_last_txnid, held), lists.count < count else { return false }
                lists.append(Array(pages))
                found += pages.count
                return found < ListReserve.searchedMax
            }
        }
        return FreeRuns.longest(in: lists, behind: ListReserve.pagesBefore)
    }

    /// How many pages each value of the list reserve has.
    func listReserve() throws(StorageFailure) -> [ListReserve.Part: Int] {
        try withReader { reader throws(StorageFailure) in
            var pages: [ListReserve.Part: Int] = [:]
            for part in ListReserve.Part.allCases {
                var value = MDB_val()
                let code = withMDBValue(part.key) { mdb_get(reader, meta.handle, $0, &value) }
                if code == MDB_NOTFOUND { continue }
                try check(code, "reading the list reserve")
                pages[part] = ListReserve.pages(ofBytes: value.mv_size, pageBytes)
            }
            return pages
        }
    }

    /// Pages that the transaction has freed.
    private func pagesFreed(_ reader: OpaquePointer, by transaction: Int) throws(StorageFailure) -> Int {
        var count = 0
        try visitFreed(reader, from: MDB_LAST, MDB_PREV) { (freedBy: Int, pages) -> Bool in
            guard freedBy >= transaction else { return false }
            count += pages.count
            return true
        }
        return count
    }

    /// Calls `body` with the records of LMDB's list of free pages (database 0): the transaction that has freed the
    /// pages, and their numbers in descending order. Stops when it returns false. Only a read transaction may read this
    /// list. Each value begins with how many pages it lists.
    private func visitFreed(
        _ reader: OpaquePointer, from first: MDB_cursor_op, _ step: MDB_cursor_op,
        _ body: (_ transaction: Int, _ pages: UnsafeBufferPointer<Int>) -> Bool
    ) throws(StorageFailure) {
        var cursor: OpaquePointer?
        try check(mdb_cursor_open(reader, 0, &cursor), "counting free pages")
        defer { mdb_cursor_close(cursor) }
        var key = MDB_val()
        var value = MDB_val()
        var last: Int?
        var code = mdb_cursor_get(cursor, &key, &value, first)
        while code == MDB_SUCCESS {
            let words = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size).bindMemory(to: Int.self)
            guard key.mv_size == MemoryLayout<Int>.size, let transaction = key.mv_data?.loadUnaligned(as: Int.self),
                let pages = FreeRuns.listed(in: words),
                // A damaged tree may lead in a circle.
                last.map({ step == MDB_NEXT ? transaction > $0 : transaction < $0 }) ?? true
            else { throw .damaged("the list of free pages is damaged") }
            last = transaction
            guard body(transaction, pages) else { return }
            code = mdb_cursor_get(cursor, &key, &value, step)
        }
        if code != MDB_NOTFOUND { try check(code, "counting free pages") }
    }

    /// Pages that hold no data in a snapshot, within the limit of the file and what the disk has.
    func freePages(_ reader: OpaquePointer) throws(StorageFailure) -> Int {
        let (diskBytes, isGreat) = fileSize.addingReportingOverflow(diskBytesFree ?? .max)
        return max(0, min(bytesMax, isGreat ? .max : diskBytes) / pageBytes - (try trees(reader).all))
    }

    /// Pages that later commits have freed and that can't be used again while somebody reads the snapshot of a
    /// transaction.
    func pagesKept(for transaction: Int) throws(StorageFailure) -> Int {
        // What the transaction itself has freed can't be used either, but that does not become more. A change that
        // needs it ends the reading.
        try withReader { reader throws(StorageFailure) in try pagesFreed(reader, by: transaction + 1) }
    }

    private func withReader<R>(
        _ body: (OpaquePointer) throws(StorageFailure) -> R
    ) throws(StorageFailure) -> R {
        let reader = try beginReader()
        defer { end(reader) }
        return try body(reader)
    }

    /// Begins a read, which lasts until `end`.
    func beginReader() throws(StorageFailure) -> OpaquePointer {
        if let idle = idleReaders.withLock({ $0.popLast() }) {
            let code = mdb_txn_renew(idle.handle)
            if code != MDB_SUCCESS { mdb_txn_abort(idle.handle) }
            try check(code, "beginning a read")
            return idle.handle
        }
        var reader: OpaquePointer?
        try check(mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &reader), "beginning a read")
        guard let reader else { throw StorageFailure(ENOMEM, "beginning a read") }
        return reader
    }

    /// Takes places in the table of readers for so many reads at one time. More are taken when they are needed. Takes
    /// fewer when the table is full, or can't be used: then the first read that lacks a place fails.
    private func keepReaders(_ count: Int) {
        var readers: [OpaquePointer] = []
        while readers.count < count, let reader = try? beginReader() { readers.append(reader) }
        for reader in readers { end(reader) }
    }

    /// Ends a read. Its cursors are closed before. It may have been reset.
    func end(_ reader: OpaquePointer) {
        mdb_txn_reset(reader)
        let idle = IdleReader(handle: reader)
        idleReaders.withLock { $0.append(idle) }
    }

    /// The pages of the trees as a transaction sees them.
    private func trees(_ reader: OpaquePointer) throws(StorageFailure) -> StorageTrees {
        func pages(_ database: MDB_dbi) throws(StorageFailure) -> TreePages {
            var statistics = MDB_stat()
            try check(mdb_stat(reader, database, &statistics), "counting pages")
            return TreePages(
                leaves: statistics.ms_leaf_pages, branches: statistics.ms_branch_pages,
                overflows: statistics.ms_overflow_pages, depth: Int(statistics.ms_depth))
        }
        // LMDB's own trees have the numbers 0 and 1: the free pages, and the names of the others.
        return StorageTrees(
            packed: try pages(packed.handle), large: try pages(large.handle), log: try pages(log.handle),
            mutations: try pages(mutations.handle), records: try pages(records.handle),
            lists: try pages(0), others: try pages(meta.handle).all + pages(1).all)
    }

    /// Makes sure that the disk has blocks for the first `wanted` pages of the file, and lowers the room's capacity to
    /// what the disk has when it has fewer.
    private func reserveBlocks(upTo wanted: Int, in room: inout StorageRoom) throws(StorageFailure) {
        let wanted = min(wanted, room.capacity)
        guard room.blocks < wanted, !room.isDiskFull else { return }
        // The file would become as long as it was, with zeros where data were.
        if let cut { throw cut }
        defer { trust.noteLength() }
        guard let present = fileBytes(dataDescriptor).map({ $0 / pageBytes }) else {
            throw StorageFailure(errno, "reading the data file's size")
        }
        room.blocks = present
        guard present < wanted else { return }
        // Reserves more at first, so that most commits find the space already reserved.
        var pages = min(room.capacity, wanted + room.reserve)
        while pages > present {
            let failure = System.reserveSpace(dataDescriptor, bytes: pages * pageBytes)
            guard failure != 0 else { break }
            let error = StorageFailure(failure, "reserving disk space")
            guard error.isLackOfSpace else { throw error }
            pages = pages > wanted ? wanted : present + (pages - present) / 2
        }
        room.blocks = max(present, pages)
        if pages < wanted { try noteBlocks(&room) }
    }

    /// Makes what the file has of the disk the room's capacity.
    private func noteBlocks(_ room: inout StorageRoom) throws(StorageFailure) {
        // A file with holes has fewer blocks than its length says.
        var status = stat()
        guard fstat(dataDescriptor, &status) == 0 else { throw StorageFailure(errno, "reading the data file's size") }
        room.capacity = min(Int(status.st_size), Int(status.st_blocks) * 512) / pageBytes
        room.isDiskFull = true
    }

    /// Whether the disk has next to no room, so that a write may be cut short. It may have said before that it had kept
    /// room for the file: some file systems write elsewhere all the same.
    var isDiskExhausted: Bool { diskBytesFree.map { $0 < Limits.diskBytesFew } ?? false }

    /// Bytes that the disk has left for this process's user; `nil`: the system can't tell.
    var diskBytesFree: Int? {
        var disk = statvfs()
        guard fstatvfs(dataDescriptor, &disk) == 0 else { return nil }
        return Int(clamping: UInt64(disk.f_bavail).multipliedReportingOverflow(by: UInt64(disk.f_frsize)).partialValue)
    }

    /// The length of the data file in bytes.
    var fileSize: Int { fileBytes(dataDescriptor) ?? 0 }
}
