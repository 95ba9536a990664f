package import Core
import Dispatch
import Foundation

/// Every collaboration's set of root hashes, and the durable log of all changes, in one LMDB environment.
///
/// Reads never wait for writes. One writer commits the mutations of many clients together and acknowledges them when
/// they are durable.
package final class RootSets: Sendable {
    package struct Configuration: Sendable {
        /// The directory of the files; made when it is missing.
        package var directory: String
        /// Bytes of the data file beyond which additions don't make it larger. The default is 16 GiB.
        package var sizeLimitBytes: Int
        /// Bytes beyond the limit that are kept for removals, on the disk, too. The file never becomes larger than both
        /// together, unless it was so before.
        package var reserveBytes: Int
        /// Bytes of change log that are kept. Older records are removed together with their mutation identifiers, so
        /// that their repeats are no longer recognized. The default is 32 MiB.
        package var logRetentionBytes: Int
        /// The log counts towards the size limit. It gets at most a quarter, so that there is room for the sets
        /// whatever the operator configured.
        package var changeLogBytesMax: Int { min(logRetentionBytes, sizeLimitBytes / 4) }
        /// Whether the log is kept beyond that, too, as long as the disk has room for it: for a few changes in a
        /// storage that somebody else keeps the log of.
        package var keepsWholeLog: Bool
        /// How many threads read at one time, not counting the storage's own. Places for them in the table of readers
        /// are taken at the opening; further threads take theirs when they first read. The default is one a processor.
        package var workers = ProcessInfo.processInfo.activeProcessorCount

        package init(
            directory: String, sizeLimitBytes: Int = 16 << 30, reserveBytes: Int = 16 << 20,
            logRetentionBytes: Int = 32 << 20, keepsWholeLog: Bool = false
        ) {
            self.keepsWholeLog = keepsWholeLog
            self.directory = directory
            self.sizeLimitBytes = sizeLimitBytes
            self.reserveBytes = reserveBytes
            self.logRetentionBytes = logRetentionBytes
        }
    }

    /// Whether the storage can be relied on.
    package let health: StorageHealth
    private let readers: ReadTransactionPool
    private let queue: CommitQueue
    private let storageCheck: StorageCheck
    private let reserveBytes: Int
    let shared: (any SharedLog)?

    /// Opens the storage, and creates it when it is missing.
    ///
    /// Throws `storageInUse`, `storageDamaged`, `storageFull` or `storageFailed`.
    ///
    /// `acceptsLoss`: whether this is the start that takes the operator's word that the newest commit may be gone.
    /// `log` gets a line when additions find no room, and when they find some again; when the storage has failed or is
    /// damaged, and when it was opened again. `shared`: the log that this storage shares with others, from its first
    /// segment on; a storage that shares one can't be used without it, nor one with changes of its own with it.
    /// `onLoss` is called once, on any thread, when the storage can't be opened again in this process: the writer has
    /// met a fault inside of LMDB, or computes without an end.
    package init(
        _ configuration: Configuration, surroundings: StorageSurroundings = StorageSurroundings(),
        acceptsLoss: Bool = false, shared: (any SharedLog)? = nil, log: Log = .none,
        onLoss: @escaping @Sendable () -> Void = {}
    ) throws(ServiceError) {
        try StorageRestore.checkFinished(configuration.directory)
        let lock = try DirectoryLock(directory: configuration.directory)
        let (health, storageCheck) = (
            StorageHealth(log: log), StorageCheck(interval: surroundings.checkInterval, log: log)
        )
        self.health = health
        self.storageCheck = storageCheck
        self.shared = shared
        reserveBytes = configuration.reserveBytes
        let newest = NewestCommit()
        let environment = try RootSets.open(
            configuration, lock, surroundings, health, newest, storageCheck, acceptsLoss: acceptsLoss,
            deferring: StructureCheck.deferred)
        if let loss = environment.possibleLoss { log(.critical, loss) }
        if let restoration = environment.restoration { log(.warning, restoration) }
        try environment.checkSharing(shared != nil)
        readers = ReadTransactionPool(environment)
        queue = CommitQueue(
            readers, configuration, surroundings, log, shared: shared, onLoss: onLoss
        ) { () throws(ServiceError) in
            let environment = try RootSets.open(configuration, lock, surroundings, health, newest, storageCheck)
            if let restoration = environment.restoration { log(.warning, restoration) }
            try environment.checkSharing(shared != nil)
            return environment
        }
        queue.start()
        storageCheck.start()
        health.whenDamaged { [weak storageCheck] in storageCheck?.hurry() }
        shared?.begin(
            SharedFollower { [weak queue] in
                queue?.ring()
            } progress: { [weak queue] in
                queue?.progress.withLock { $0 } ?? SharedProgress()
            } freshAsOf: { [weak queue] in
                max(queue?.freshAsOf.load(ordering: .relaxed) ?? 0, 1) - 1
            } fresh: { [weak queue] asOf in
                queue?.hasNothingNew(asOf)
            } disagree: { [health] reason in
                health.report(.damaged, reason)
            })
    }

    /// Workers for which places in LMDB's table of readers are taken at the opening. Another program that opened the
    /// table first may have made it with LMDB's default, 126: some of those stay free.
    private static let readingWorkersMax = 96
    /// The writer, the check and a backup take two each. The others are for the building of directories, and for the
    /// pages and timers of the service.
    private static let readersBesideWorkers = 16

    private static func open(
        _ configuration: Configuration, _ lock: DirectoryLock, _ surroundings: StorageSurroundings,
        _ health: StorageHealth, _ newest: NewestCommit, _ check: StorageCheck, acceptsLoss: Bool = false,
        deferring: [DatabaseName] = []
    ) throws(ServiceError) -> StorageEnvironment {
        let environment = try StorageEnvironment(
            directory: configuration.directory, lock: lock,
            bytesMax: configuration.sizeLimitBytes + configuration.reserveBytes,
            reserveBytes: configuration.reserveBytes, surroundings, health: health, newest: newest,
            acceptsLoss: acceptsLoss, deferring: deferring,
            readers: min(configuration.workers, readingWorkersMax) + readersBesideWorkers)
        check.begin(environment)
        return environment
    }

    deinit {
        close()
    }

    /// Refuses new mutations, commits those that wait, and ends the check of the start. Mutations wait for that check,
    /// unless `stopCheck` was called.
    package func close() {
        queue.endsFollowing()
        shared?.end()
        queue.close()
        storageCheck.stop()
    }

    /// How often everything that is stored was checked, for tests.
    var checkCount: Int { storageCheck.walkCount }

    /// What is signalled when the environment that is open now is closed, for tests.
    var closing: DispatchSemaphore? { (try? readers.environment())?.closing }

    /// Whether a check goes on now, for tests.
    var isBeingChecked: Bool { storageCheck.isWalking }

    /// Ends the check of the start, so that nobody waits for it any more. What it has not come to can't be read, and
    /// mutations that wait for it fail.
    package func stopCheck() { storageCheck.stop() }

    /// Throws `behindSequence` unless later reads see the change with that sequence. 0 never throws it.
    package func check(atLeast sequence: UInt64) throws(ServiceError) {
        guard sequence > 0 else { return }
        try read { snapshot throws(ServiceError) in
            try checkSequence(sequence, last: try snapshot.lastSequence())
        }
    }

    /// What requests read.
    package enum Contents: Sendable {
        case sets, records, changes

        fileprivate var databases: [DatabaseName] {
            switch self {
            case .sets: [.packed, .large]
            case .records: [.records, .packed, .large]
            case .changes: [.log]
            }
        }
    }

    /// Throws `busy`, with a time, while the check of the start has not come to what a request reads although readers
    /// wait for it no more. Called before anything of a request is done.
    package func admit(reading contents: Contents) throws(ServiceError) {
        guard !health.isChecked, health.boundsWaits, let environment = try? readers.environment(),
            environment.trust.isOverdue(contents.databases)
        else { return }
        throw StorageFailure.unchecked.asServiceError
    }

    /// Calls `body` with a snapshot of all sets. It contains every change that was acknowledged before this call.
    ///
    /// Throws what `body` throws, or `storageFailed`, `storageDamaged`, `busy`.
    package func read<R>(
        _ body: (borrowing Snapshot) throws(ServiceError) -> R
    ) throws(ServiceError) -> R {
        var result: Result<R, ServiceError>?
        do throws(StorageFailure) {
            try readers.withTransaction { transaction throws(StorageFailure) in
                do throws(ServiceError) {
                    result = .success(try body(Snapshot(transaction, transaction.environment)))
                } catch {
                    result = .failure(error)
                }
            }
        } catch {
            health.note(error)
            throw error.asServiceError
        }
        if case .failure(let error) = result { health.note(error) }
        guard let result else { throw ServiceError(.internalFault, "a read ended without a result") }
        return try result.get()
    }

    /// Queues a mutation of a peer. An urgent one goes before those of other peers. `completion` is called once: on the
    /// writer's thread when the mutation is durable or refused, or at once with `busy` when it is above the peer's
    /// share of the queue, or with `shuttingDown`. A storage that is known to be damaged takes no additions.
    package func submit(
        _ mutation: Mutation, of peer: Holder = .service, isUrgent: Bool = false,
        completion: @escaping @Sendable (Result<MutationReceipt, ServiceError>) -> Void
    ) {
        queue.submit(mutation, of: peer, isUrgent: isUrgent, completion: completion)
    }

    /// Applies a mutation and waits until it is durable. For tools and tests.
    ///
    /// Throws the error that refused the mutation.
    @discardableResult
    package func apply(_ mutation: Mutation) throws(ServiceError) -> MutationReceipt {
        let done = DispatchSemaphore(value: 0)
        let outcome = Outcome()
        submit(mutation) { result in
            outcome.result.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = outcome.result.withLock({ $0 }) else {
            throw ServiceError(.internalFault, "a mutation ended without a result")
        }
        return try result.get()
    }

    private final class Outcome: Sendable {
        let result = Lock<Result<MutationReceipt, ServiceError>?>(nil)
    }

    /// Commits the mutations whose turn it is, on this thread: for a storage whose writer has no thread of its own.
    /// Returns false when none waits.
    package func write() -> Bool { queue.write() }

    // MARK: A shared log

    /// Whether the directory has no storage yet, or one whose first commit was not made.
    ///
    /// Throws `storageFailed` when that can't be read.
    package static func isNew(_ directory: String) throws(ServiceError) -> Bool {
        do throws(StorageFailure) {
            return try !MetaPages.haveCommit(in: directory + "/" + DataFile.fileName)
        } catch {
            throw error.asServiceError
        }
    }

    /// Where the storage in a directory is in the log that it shares; `nil`: it shares none.
    ///
    /// Throws what keeps a storage from being read, and `storageInUse` when a service has the directory.
    package static func sharedPlace(in directory: String) throws(ServiceError) -> SharedPlace? {
        // The lock's directory and file would be made when they are missing.
        try DataFile.checkExistence(in: directory)
        let lock = try DirectoryLock(directory: directory)
        return try withExtendedLifetime(lock) { () throws(ServiceError) in
            let live = try LiveStorage(directory)
            do throws(StorageFailure) {
                return try live.cost(of: .log).whileHeld { () throws(StorageFailure) in
                    try live.transaction.sharedPlace()
                }
            } catch {
                throw error.asServiceError
            }
        }
    }

    /// Writes everything that is stored as of one moment to an open file, as `StorageBackup` does. It may take long, so
    /// it is for a thread of its own.
    ///
    /// `time`: now, in milliseconds since 1970. Throws `storageFull` unless the disk has room for it beside what is
    /// kept for removals.
    package func backUp(to file: CInt, time: UInt64) throws(ServiceError) -> StorageBackup.Summary {
        do throws(StorageFailure) {
            return try readers.withTransaction { transaction throws(StorageFailure) in
                let environment = transaction.environment
                let need = try environment.usedBytes(transaction.handle) + 2 * reserveBytes
                if let free = environment.diskBytesFree, free < need {
                    throw StorageFailure(ENOSPC, "making a snapshot")
                }
                return try StorageBackup.write(environment, transaction, to: file, time: time)
            }
        } catch {
            throw error.asServiceError
        }
    }

    /// Gets changes that others have put into the shared log, those that were made here, and the sequence of the last
    /// change that was applied.
    package typealias AppliedChanges = @Sendable (_ others: [Change], _ own: [Change], _ last: UInt64) -> Void

    /// From now on `body` is called on the writer's thread whenever segments of the shared log were applied, before the
    /// storage counts as fresh or others hear of it. To be called once, and to be followed by a look at everything that
    /// is kept of the storage: others' changes may have been applied before.
    package func onApplied(_ body: @escaping AppliedChanges) {
        queue.listeners.withLock { $0.onApplied = body }
    }

    /// From now on `body` is called, on any thread, when the storage has everything that was in the shared log at a
    /// time, in milliseconds of its clock. To be called once.
    package func onNews(_ body: @escaping @Sendable (UInt64) -> Void) {
        queue.listeners.withLock { $0.onNews = body }
    }

    /// Now, by the clock of the log that this storage shares; `nil`: it shares none.
    package var logTime: UInt64? { shared?.now }

    /// Says that a snapshot of this storage is going to be given to others, or is no longer. Until then the shared log
    /// is kept from here on.
    package func givesSnapshot(_ isGiven: Bool) {
        shared?.gives(snapshot: isGiven ? queue.progress.withLock { $0.segment } : nil)
    }

    /// Whether the shared log goes on behind the snapshot that is given to others.
    package var keepsSnapshot: Bool { shared?.keepsSnapshot ?? true }

    /// Whether the storage shares a log with others.
    package var sharesLog: Bool { shared != nil }

    /// The last sequence that the storage has of the log that it shares, as far as the writer has looked; `nil`: it
    /// shares none.
    package var sharedSequence: UInt64? { shared == nil ? nil : queue.progress.withLock { $0.sequence } }

    /// The number of the last segment that was applied, and how many milliseconds ago the storage had everything that
    /// was in the log, unless it has not heard of the log yet; `nil`: it shares none.
    package var sharing: (segment: UInt64, behindMilliseconds: UInt64?)? {
        guard let shared else { return nil }
        let now = shared.now
        let asOf = freshAsOf
        return (queue.progress.withLock { $0.segment }, asOf.map { now - min(now, $0) })
    }

    /// Calls `completion` once, on any thread, when every storage that shares the log has applied the change with a
    /// sequence, or answers nothing any more. A storage that shares none is all of them.
    ///
    /// It gets `behindSequence` when the change was not applied here, and `busy` when nobody knows after so many
    /// milliseconds.
    package func whenEverywhere(
        _ sequence: UInt64, within milliseconds: UInt64,
        _ completion: @escaping @Sendable (Result<Void, ServiceError>) -> Void
    ) {
        do throws(ServiceError) {
            try check(atLeast: sequence)
        } catch {
            return completion(.failure(error))
        }
        guard let shared else { return completion(.success(())) }
        shared.whenEverywhere(sequence, within: milliseconds) { isEverywhere in
            guard !isEverywhere else { return completion(.success(())) }
            completion(
                .failure(
                    ServiceError(
                        .busy,
                        "it is not known yet whether all services have the change: ask again (if that goes on, the "
                            + "service's log says why)")))
        }
    }

    /// Up to when this storage has everything that was in the log that it shares, in milliseconds of the log's clock;
    /// `nil`: it does not know yet, or shares none. One load of a number.
    package var freshAsOf: UInt64? {
        let number = queue.freshAsOf.load(ordering: .acquiring)
        return number == 0 ? nil : number - 1
    }

    /// Why the storage does not follow the log that it shares, or why the others do not know of it; `nil`: it does, and
    /// they do, as far as is known.
    package var sharingProblem: String? { queue.sharing.withLock { $0.problem } ?? shared?.absence }

    // MARK: Figures

    /// What the commits took.
    package var commitFigures: CommitFigures { queue.figures }
    /// Whether there is no room for usual additions, in the data file or on the disk, as far as is known: because some
    /// were refused, or because the writer has looked.
    package var lacksRoom: Bool { queue.lacksRoom }

    /// Lets the writer look whether there is room for usual additions: after the start and now and then, more often
    /// while there is none. Returns at once.
    package func lookForRoom() { queue.lookForRoom() }
    /// For how many milliseconds the writer has been at the mutations of one commit; `nil`: it is at none.
    package var commitMilliseconds: UInt64? { queue.commitMilliseconds }
    /// Bytes that the disk of the data file has left; `nil`: the system can't tell, or the file is not open.
    package var diskBytesFree: Int? { (try? readers.environment())?.diskBytesFree }
    /// Number of mutations that wait for the writer.
    package var queueDepth: Int { queue.depth }
    /// Commits since the start, and mutations in them.
    package var commitCounts: (commits: UInt64, mutations: UInt64) {
        (queue.commits.load(ordering: .relaxed), queue.committed.load(ordering: .relaxed))
    }
}
