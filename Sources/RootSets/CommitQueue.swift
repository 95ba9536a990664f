import CLMDB
import Core
import Dispatch
import Foundation
import Platform
import Synchronization

/// The mutations that wait for the writer. One writer thread takes all waiting mutations, commits them together, and
/// answers them after the commit. An urgent one that arrives meanwhile joins the commit, which then ends soon.
final class CommitQueue: Sendable {
    typealias Completion = @Sendable (Result<MutationReceipt, ServiceError>) -> Void

    struct State {
        var waiting = MutationLines()
        /// A mutation that was taken, but waits for room in the next commit.
        var next: WaitingMutation?
        /// The places of waiting mutations, and their bytes.
        var places = PeerShares(capacity: Limits.mutationsQueuedMax)
        var bytes = PeerShares(capacity: Limits.mutationBytesQueuedMax)
        /// How long the last commit was written.
        var written = Duration.zero
        /// The mutations of the present group, and how many of them were answered.
        var inWork: [WaitingMutation] = []
        var answered = 0
        var isWriterAsleep = false
        var isStarted = false
        var isClosed = false
        /// Whether the writer is to look whether there is room, when no mutation waits.
        var isLookWanted = false
        /// How many of the next groups have a single mutation each, and how many they were last.
        var aloneLeft = 0
        var aloneLast = 0
        /// Whether the writer was given up. Others have answered its mutations.
        var isAbandoned = false

        /// Takes a place for a mutation. Returns false, and takes none, when it is more than the peer's share.
        mutating func takePlace(bytes count: Int, of peer: Holder) -> Bool {
            guard places.take(1, by: peer) else { return false }
            if bytes.take(count, by: peer) { return true }
            places.giveBack(1, by: peer)
            return false
        }

        /// Adds the mutation whose turn it is to the group. Returns false when none waits, or when the group has no
        /// room for it.
        mutating func take(into group: inout Group) -> Bool {
            guard let next = waiting.first, group.allows(next, beforeUrgent: waiting.hasUrgent) else { return false }
            waiting.removeFirst()
            places.giveBack(1, by: next.peer)
            bytes.giveBack(next.bytes, by: next.peer)
            group.append(next)
            inWork.append(next)
            precondition(!waiting.isEmpty || bytes.taken == 0, "bytes are counted, but no mutation waits")
            return true
        }

        /// Puts all mutations of the present group back but the first one, and the one that waits for the next commit.
        mutating func putBackAllButFirst() {
            var taken = Array(inWork.dropFirst())
            if let next { taken.append(next) }
            (inWork, next) = (Array(inWork.prefix(1)), nil)
            for mutation in taken {
                places.takeBack(1, by: mutation.peer)
                bytes.takeBack(mutation.bytes, by: mutation.peer)
            }
            waiting.putBack(taken)
        }

        /// Takes all mutations that were not answered. Those that were get into `finished`.
        mutating func takeAll(finished: inout [WaitingMutation]) -> [WaitingMutation] {
            let all = Array(inWork[answered...])
            finished = inWork
            (inWork, answered) = ([], 0)
            return all + takeWaiting()
        }

        /// Takes all mutations that wait.
        mutating func takeWaiting() -> [WaitingMutation] {
            var all: [WaitingMutation] = []
            if let next { all.append(next) }
            next = nil
            while let waitingNext = waiting.first {
                waiting.removeFirst()
                places.giveBack(1, by: waitingNext.peer)
                bytes.giveBack(waitingNext.bytes, by: waitingNext.peer)
                all.append(waitingNext)
            }
            return all
        }
    }

    /// The mutations of one commit.
    struct Group {
        private(set) var mutations: [WaitingMutation] = []
        private var bytes = 0
        private var hasUrgent = false
        private var peers: Set<Holder> = []
        /// When the group takes no more, if it has mutations of several peers.
        private let sharedEnd: ContinuousClock.Instant
        private let now: @Sendable () -> ContinuousClock.Instant
        /// Mutations that waited when the group was begun. Later ones that are not urgent go into the next group.
        let waiting: Int
        private let bytesMax: Int

        /// `written`: how long the last commit was written. `bytesMax`: the most bytes of a group that has more than
        /// one mutation.
        init(
            waiting: Int, written: Duration, bytesMax: Int = Limits.mutationBytesPerCommitMax,
            now: @escaping @Sendable () -> ContinuousClock.Instant
        ) {
            self.waiting = waiting
            self.bytesMax = bytesMax
            self.now = now
            sharedEnd = now() + CommitQueue.sharedTime(afterWriting: written)
        }

        /// A group of one mutation.
        init(_ alone: WaitingMutation, now: @escaping @Sendable () -> ContinuousClock.Instant) {
            self.init(waiting: 0, written: .zero, now: now)
            append(alone)
        }

        /// Whether a mutation may be added. `beforeUrgent`: whether the next mutation of some peer is urgent.
        func allows(_ next: WaitingMutation, beforeUrgent: Bool) -> Bool {
            guard !mutations.isEmpty else { return true }
            // Otherwise a peer with a few mutations would wait for all of one with many, which may be urgent, too.
            let isMembers = peers.contains(next.peer)
            if peers.count > 1 || !isMembers, isMembers || !next.isUrgent, now() >= sharedEnd {
                return false
            }
            let endsSoon = !next.isUrgent && (hasUrgent || beforeUrgent)
            return mutations.count < (next.isUrgent ? Limits.mutationsPerCommitMax : waiting)
                && mutations.count < (endsSoon ? Limits.mutationsBesideUrgentMax : Limits.mutationsPerCommitMax)
                && bytes + next.bytes <= (endsSoon ? min(bytesMax, Limits.mutationBytesBesideUrgentMax) : bytesMax)
        }

        mutating func append(_ next: WaitingMutation) {
            peers.insert(next.peer)
            mutations.append(next)
            bytes += next.bytes
            if next.isUrgent { hasUrgent = true }
        }

        /// Removes the mutation that was added last.
        mutating func removeLast() -> WaitingMutation {
            mutations.removeLast()
        }
    }

    /// Who is told of what comes of the shared log. See the functions of `RootSets` with these names.
    struct Listeners {
        var onApplied: RootSets.AppliedChanges?
        var onNews: (@Sendable (UInt64) -> Void)?
    }

    let storage: ReadTransactionPool
    let configuration: RootSets.Configuration
    let surroundings: StorageSurroundings
    let watch: WriterWatch
    /// The log that this storage shares with others; `nil` when it shares none.
    let shared: (any SharedLog)?
    let sharing = Lock(Sharing())
    let listeners = Lock(Listeners())
    /// What the last commit would change that has failed, when that is not known yet: it may be durable all the same.
    /// Only the writer's thread uses it.
    let undecided = Lock<UndecidedChanges?>(nil)
    /// See `RootSets.freshAsOf`, plus 1; 0: never.
    let freshAsOf = Atomic<UInt64>(0)
    /// How far the writer has applied the shared log, as far as it has looked.
    let progress = Lock(SharedProgress())
    private let watchTimer = Lock<RepeatingTimer?>(nil)
    private let reopening: Reopening
    let onLoss: @Sendable () -> Void
    let state = Lock(State())
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    let writer = ThreadConfinement()
    let log: Log
    /// What the log was told about the lack of room.
    let fullness: FullnessLog
    /// Whether an empty commit was tried since the last commit that changed something. Another one would free no more
    /// pages. Only the writer's thread uses it.
    let hasTriedEmptyCommit = Atomic<Bool>(false)
    let listReserve = Lock(ListReserveState())
    /// By how many bytes records became longer since there was room for additions. Only the writer's thread uses it.
    private let grown = Lock(0)
    /// Commits made, and mutations in all of them.
    let commits = Atomic<UInt64>(0)
    let committed = Atomic<UInt64>(0)
    /// When the writer began with the mutations that it is at, in milliseconds of the system's clock, plus 1; 0: it is
    /// at none.
    private let workBegan = Atomic<UInt64>(0)
    private let counted = Lock(CommitFigures())
    /// Commits whose note is durable.
    private let noted = Atomic<UInt64>(0)
    /// Whether the log was told that the note can't be written.
    private let isNoteBehind = Lock(false)

    /// `onLoss` is called once, on any thread, when the writer was given up. `open` opens the storage after a failure,
    /// when the environment before is closed.
    ///
    /// `shared`: the log that this storage shares with others.
    init(
        _ storage: ReadTransactionPool, _ configuration: RootSets.Configuration,
        _ surroundings: StorageSurroundings = StorageSurroundings(),
        _ log: Log = .none, watch: WriterWatch = WriterWatch(), shared: (any SharedLog)? = nil,
        onLoss: @escaping @Sendable () -> Void = {},
        open: @escaping @Sendable () throws(ServiceError) -> StorageEnvironment
    ) {
        self.storage = storage
        self.configuration = configuration
        self.surroundings = surroundings
        self.watch = watch
        self.shared = shared
        self.onLoss = onLoss
        self.log = log
        fullness = FullnessLog(log)
        reopening = Reopening(storage, log: log, open: open)
        storage.health.whenFailed { [weak self] in self?.wakeWriter() }
    }

    /// A queue of an environment that is not opened again after a failure.
    convenience init(_ environment: StorageEnvironment, _ configuration: RootSets.Configuration) {
        self.init(ReadTransactionPool(environment), configuration) { () throws(ServiceError) in
            throw ServiceError(.storageFailed, "this storage is not opened again")
        }
    }

    /// Starts the writer. Must be called once, before `close`.
    func start() {
        state.withLock { state in
            precondition(!state.isStarted && !state.isClosed, "a queue was started twice, or after it was closed")
            state.isStarted = true
        }
        guard surroundings.wakeWriter == nil else { return }
        let writer = Thread { self.run() }
        writer.name = "rootgate writer"
        writer.start()
        let timer = Timers.system.every(milliseconds: 1000, leeway: 100) { [weak self] in self?.checkWriter() }
        watchTimer.withLock { $0 = timer }
    }

    /// Looks whether the writer still proceeds, and makes the note of the newest commit durable.
    private func checkWriter() {
        tellFreshness()
        let bytes = (try? storage.environment())?.fileSize ?? 0
        if watch.check(fileBytes: bytes) {
            let seconds = watch.limit(fileBytes: bytes).components.seconds
            storage.health.report(
                .failed,
                "the writer has computed for \(seconds) s or more without an end: what it reads leads in a circle")
            giveUp()
        }
        if let environment = try? storage.environment() {
            // As long as it is held, no other one is open.
            withExtendedLifetime(environment) {
                if let fault = environment.displacement { storage.health.report(.failed, fault.action) }
            }
        }
        noteCommits()
        // A backup that was killed would keep the pages that it has read for ever.
        (try? storage.environment())?.forgetStaleReaders()
        // It may have fallen asleep while the failure was reported.
        if storage.health.hasFailed { wakeWriter() }
    }

    /// Makes the note of the newest commit durable when there was a commit since.
    private func noteCommits() {
        let count = commits.load(ordering: .relaxed)
        guard count != noted.load(ordering: .relaxed), let environment = try? storage.environment() else { return }
        let isNoted = environment.syncNote()
        if isNoted { noted.store(count, ordering: .relaxed) }
        let isNews = isNoteBehind.withLock { isBehind in
            defer { isBehind = !isNoted }
            return isBehind == isNoted
        }
        guard isNews else { return }
        if isNoted {
            log(.info, "\(CommitMark.fileName) is written again")
        } else {
            log(
                .critical,
                "\(CommitMark.fileName) can't be written: see to the disk and the file; should the data file lose its "
                    + "last changes, the next start may not notice")
        }
    }

    /// Answers all mutations with the failure, in the writer's place, which is not coming back or must not touch the
    /// storage any more.
    private func giveUp() {
        // As in `nextWork`, completions go with the lock released.
        var finished: [WaitingMutation] = []
        defer { finished.removeAll() }
        // First of all, so that the writer, should it come back, opens no storage beside the one that is given up.
        let (left, wasAbandoned) = state.withLock { state in
            defer { state.isAbandoned = true }
            return (state.takeAll(finished: &finished), state.isAbandoned)
        }
        storage.abandon()
        let refusal = storage.health.refusal ?? ServiceError(.storageDamaged, "the storage has failed")
        for pending in left { pending.completion(.failure(refusal)) }
        if !wasAbandoned { onLoss() }
    }

    func wakeWriter() {
        state.withLock { wakeWriter(&$0) }
    }

    /// Wakes the writer if it sleeps. Called under the lock.
    func wakeWriter(_ state: inout State) {
        guard state.isWriterAsleep else { return }
        state.isWriterAsleep = false
        if let wakeWriter = surroundings.wakeWriter { wakeWriter() } else { wake.signal() }
    }

    /// Queues a mutation of a peer, which shares the queue with others (`Shares`). An urgent one goes before those of
    /// other peers. The writer's thread calls `completion` once the mutation is durable or refused. If the mutation is
    /// not queued, `completion` is called at once with `busy` or `shuttingDown`.
    func submit(_ mutation: Mutation, of peer: Holder, isUrgent: Bool, completion: @escaping Completion) {
        let bytes = CommitQueue.weight(of: mutation)
        precondition(bytes > 0, "a mutation has no bytes")
        let refusal: ServiceError? = state.withLock { state in
            if state.isClosed { return ServiceError(.shuttingDown, "the storage is closing") }
            if let refusal = storage.health.refusal { return refusal }
            guard state.takePlace(bytes: bytes, of: peer) else {
                return ServiceError(.busy, "too many mutations wait for the disk: try again later")
            }
            state.waiting.append(
                WaitingMutation(
                    mutation: mutation, bytes: bytes, peer: peer, isUrgent: isUrgent, completion: completion))
            wakeWriter(&state)
            return nil
        }
        if let refusal { completion(.failure(refusal)) }
    }

    /// Number of waiting mutations.
    var depth: Int { state.withLock { $0.waiting.count + ($0.next == nil ? 0 : 1) } }

    var figures: CommitFigures { counted.withLock { $0 } }

    /// Whether usual additions are refused for lack of room.
    var lacksRoom: Bool { fullness.isFull }

    /// Lets the writer look whether there is room for usual additions: after the start and now and then, more often
    /// while there is none. Returns at once.
    func lookForRoom() {
        guard fullness.takeLook() else { return }
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isLookWanted = true
            wakeWriter(&state)
        }
    }

    /// For how many milliseconds the writer has been at the mutations of one commit; `nil`: it is at none.
    var commitMilliseconds: UInt64? {
        let began = workBegan.load(ordering: .relaxed)
        let now = MonotonicClock.system.milliseconds
        return began == 0 ? nil : now - min(now, began - 1)
    }

    /// Refuses new mutations, lets the writer commit those that wait, and waits until its thread has ended. A second
    /// call does nothing. A call on the writer's thread does not wait: a completion may release the last reference to
    /// the root sets, and the thread then ends by itself.
    func close() {
        let wasClosed = state.withLock { state in
            precondition(state.isStarted, "a queue was closed before it was started")
            // A writer that was given up may never end.
            let wasClosed = state.isClosed || state.isAbandoned
            state.isClosed = true
            wakeWriter(&state)
            return wasClosed
        }
        watchTimer.withLock { $0 }?.cancel()
        guard !wasClosed, !writer.isCurrent else { return }
        guard surroundings.wakeWriter == nil else {
            while write() {}
            return
        }
        ended.wait()
    }

    /// For how long a commit takes mutations of several peers when the last commit was written in `written`. So what
    /// writing costs is shared by many mutations, and a peer with few of them waits little for the others'.
    static func sharedTime(afterWriting written: Duration) -> Duration {
        min(
            max(written * Limits.sharedCommitWrites, .milliseconds(Limits.sharedCommitMillisecondsMin)),
            .milliseconds(Limits.sharedCommitMillisecondsMax))
    }

    private static func weight(of mutation: Mutation) -> Int {
        switch mutation.change {
        case .addRoots(_, let roots), .removeRoots(_, let roots): 256 + roots.count * Digest.byteCount
        case .createCollaboration, .dropCollaboration: 256
        case .edit(let edit): 256 + edit.weight
        }
    }

    // MARK: The writer

    private func run() {
        writer.bind()
        watch.bind()
        System.shortenTimeSlice(microseconds: Limits.timeSliceMicroseconds)
        loop: while true {
            switch nextWork() {
            case .group(let group):
                watch.begin()
                noteWork()
                commit(group)
                workBegan.store(0, ordering: .relaxed)
                watch.end()
                followIfDue()
            case .look:
                look()
                followIfDue()
            case .over: break loop
            case .wait where shared != nil:
                let pause = DispatchTimeInterval.milliseconds(Int(Limits.sharedLookMilliseconds))
                if wake.wait(timeout: .now() + pause) == .timedOut { state.withLock { $0.isWriterAsleep = false } }
                followIfDue()
            case .wait: wake.wait()
            case .waitFor(let seconds):
                if wake.wait(timeout: .now() + seconds) == .timedOut { state.withLock { $0.isWriterAsleep = false } }
            }
        }
        state.withLock { state in
            precondition(
                state.isAbandoned || state.isClosed && state.waiting.isEmpty && state.next == nil,
                "the writer ends while mutations wait")
        }
        // The thread ends. A later thread may get the same identity.
        writer.unbind()
        ended.signal()
    }

    /// Notes that the writer begins with a commit.
    func noteWork() { workBegan.store(MonotonicClock.system.milliseconds + 1, ordering: .relaxed) }

    /// Commits the mutations whose turn it is, on this thread: it is the writer's for as long as that takes. Returns
    /// false when none waits.
    func write() -> Bool {
        writer.bind()
        defer { writer.unbind() }
        switch nextWork() {
        case .group(let group):
            commit(group)
            workBegan.store(0, ordering: .relaxed)
            return true
        case .look:
            look()
            return true
        default: return false
        }
    }

    /// Looks whether there is room for additions, also in the pages that the last commit has freed.
    private func look() {
        watch.begin()
        noteWork()
        defer {
            workBegan.store(0, ordering: .relaxed)
            watch.end()
        }
        let hasRoom = try? writing { environment throws(StorageFailure) in
            let least = fullness.least
            var room = try newRoom(environment)
            if let isThere = try room.hasUsualRoom(least) { return isThere }
            guard !hasTriedEmptyCommit.load(ordering: .relaxed) else { return false }
            try commitNothing(environment)
            room = try newRoom(environment)
            return try room.hasUsualRoom(least) ?? false
        }
        if let hasRoom { fullness.looked(hasRoom: hasRoom) }
    }

    /// What the writer does next.
    private enum Work {
        case group(Group)
        /// To look whether there is room.
        case look
        /// Nothing, until it is woken.
        case wait
        /// Nothing, until it is woken or so many seconds have passed: then the storage is to be opened again.
        case waitFor(Double)
        /// Nothing any more: the queue is closed and empty, or the writer was given up.
        case over
    }

    /// Begins a group with the mutation whose turn it is, if there is one. Opens the storage again if it has failed.
    private func nextWork() -> Work {
        writer.assertIsCurrent()
        let isAbandoned = state.withLock { $0.isAbandoned }
        let pause = storage.health.hasFailed && !isAbandoned ? reopening.attempt() : nil
        // A completion may hold the last reference to the root sets, which then close this queue: it goes with the lock
        // released.
        var finished: [WaitingMutation] = []
        defer { finished.removeAll() }
        return state.withLock { state -> Work in
            guard !state.isAbandoned else { return .over }
            var group = Group(
                waiting: state.waiting.count, written: state.written,
                bytesMax: bytesPerCommit(isAlone: state.aloneLeft > 0),
                now: surroundings.now)
            swap(&finished, &state.inWork)
            state.answered = 0
            if let next = state.next {
                state.next = nil
                group.append(next)
                state.inWork.append(next)
                return .group(group)
            }
            guard state.take(into: &group) else {
                if state.isLookWanted, !state.isClosed, pause == nil {
                    state.isLookWanted = false
                    return .look
                }
                state.isWriterAsleep = !state.isClosed
                return state.isClosed ? .over : pause.map { .waitFor($0) } ?? .wait
            }
            return .group(group)
        }
    }

    /// The most bytes of the next group if it has more than one mutation.
    private func bytesPerCommit(isAlone: Bool) -> Int {
        if isAlone { return 0 }
        return shared == nil ? Limits.mutationBytesPerCommitMax : Limits.mutationBytesPerSegmentMax
    }

    /// Lets each of the next mutations be committed alone. `isAgain`: twice as many as the last time, because a group
    /// has found no room behind them.
    func commitAloneForAWhile(isAgain: Bool = false) {
        state.withLock { state in
            let count = min((isAgain ? 2 : 1) * state.aloneLast, Limits.mutationsPerCommitMax)
            state.aloneLast = max(count, Limits.commitsAlone)
            state.aloneLeft = max(state.aloneLeft, state.aloneLast)
        }
    }

    /// Answers the next mutation of the group, unless somebody else has done so when the writer was given up.
    func answer(_ pending: WaitingMutation, _ result: Result<MutationReceipt, ServiceError>) {
        let isOurs = state.withLock { state in
            guard !state.isAbandoned else { return false }
            state.answered += 1
            return true
        }
        watch.proceed()
        if isOurs { pending.completion(result) }
    }

    /// Commits the group, and what joins it, in one transaction. If the space runs out all the same, that transaction
    /// is aborted. The first mutation is committed alone; so are the others when it is their turn again. Then the
    /// mutations that free space succeed. When a mutation meets damage, it is done in the same way: then those that
    /// need nothing damaged succeed.
    private func commit(_ begun: Group) {
        writer.assertIsCurrent()
        state.withLock { $0.aloneLeft = max(0, $0.aloneLeft - 1) }
        if let shared { return share(begun, by: shared) }
        var group = begun
        do throws(StorageFailure) {
            let results = try attempt(&group, isJoined: true)
            precondition(results.count == group.mutations.count, "there is not one result for each mutation")
            // The commit has succeeded, so each mutation is durable or refused.
            var turn = ProcessorTurn(microseconds: Limits.processorTurnMicroseconds)
            for (pending, result) in zip(group.mutations, results) {
                answer(pending, result)
                turn.endIfOver()
            }
        } catch {
            guard error.isLackOfSpace || error.isDamage else {
                for pending in group.mutations { answer(pending, .failure(error.asServiceError)) }
                return
            }
            commitFirstAlone(of: group)
        }
    }

    /// Commits one mutation. If it lacks space alone, it is tried once more when the pages that the last commit has
    /// freed can be used. A removal that still lacks space gets what is kept for it, and the change log gives way to
    /// it.
    private func commitAlone(_ pending: WaitingMutation) {
        let change = pending.mutation.change
        do throws(StorageFailure) {
            guard try lackOfSpace(for: pending) != nil else { return }
            // When this fails, so does the next attempt.
            try? writing { environment throws(StorageFailure) in try commitNothing(environment) }
            guard var lack = try lackOfSpace(for: pending) else { return }
            guard try !needsSpace(change) else { throw lack }
            if lack.code != MDB_TXN_FULL, try hasTakenBackSnapshots() {
                guard let rest = try lackOfSpace(for: pending) else { return }
                lack = rest
            }
            if try needsListReserve(change, after: lack),
                try commitWithListReserve(pending, after: lack, isLogged: true) == nil
            {
                return
            }
            try commitInPlaceOfLog(pending)
        } catch {
            answer(pending, .failure(refusal(error)))
        }
    }

    /// Commits a removal to which the change log gives way: its oldest records are removed, twice as many in each
    /// round, until the removal finds room. If it still finds none, it gets no record itself, and at last the list
    /// reserve.
    private func commitInPlaceOfLog(_ pending: WaitingMutation) throws(StorageFailure) {
        var round = 0
        while hasTrimmedLog(round) {
            try? writing { environment throws(StorageFailure) in try commitNothing(environment) }
            guard try lackOfSpace(for: pending) != nil else { return }
            round += 1
        }
        guard let lack = try lackOfSpace(for: pending, isLogged: false),
            let last = try commitWithListReserve(pending, after: lack, isLogged: false)
        else { return }
        fullness.refusedRemoval(refusal(last))
        throw last
    }

    /// Tries to commit a removal with the list reserve, and answers it, unless there is no space for it: then it
    /// returns why. `lack`: why there was none without the reserve.
    private func commitWithListReserve(
        _ pending: WaitingMutation, after lack: StorageFailure, isLogged: Bool
    ) throws(StorageFailure) -> StorageFailure? {
        noteWork()
        var last: StorageFailure? = lack
        _ = try withListReserve { pages throws(StorageFailure) in
            last = try lackOfSpace(for: pending, isLogged: isLogged, listReserve: pages)
        }
        return last
    }

    private func needsSpace(_ change: Change) throws(StorageFailure) -> Bool {
        try writing { environment throws(StorageFailure) in
            needsSpace(change, try environment.growth(by: change), behind: 0)
        }
    }

    /// Whether a mutation is an addition. See `RecordGrowth`. `bytes`: by which the mutations before it in the same
    /// commit make records longer.
    func needsSpace(_ change: Change, _ growth: RecordGrowth, behind bytes: Int) -> Bool {
        guard case .edit(let edit) = change, !edit.needsSpace else { return change.needsSpace }
        if growth.most > Limits.recordGrowthFreeBytesMax { return true }
        return !edit.removes && grown.withLock { $0 + bytes + growth.bytes > configuration.reserveBytes / 4 }
    }

    /// Counts by how many bytes a commit has made records longer. `hasRoom`: whether additions had room besides.
    func noteGrowth(_ bytes: Int, hasRoom: Bool) {
        guard bytes > 0 else { return }
        grown.withLock { $0 = hasRoom ? 0 : $0 + bytes }
    }

    /// Whether a removal that has failed lacks only neighbouring pages, for more than its record in the log: that may
    /// find room when the log gives way.
    private func needsListReserve(
        _ change: Change, after failure: StorageFailure
    ) throws(StorageFailure) -> Bool {
        guard failure.code != MDB_TXN_FULL, PageNeed.hasLongRecord(change) || !PageNeed.hasLongLogRecord(change) else {
            return false
        }
        return try writing { environment throws(StorageFailure) in
            var room = try newRoom(environment)
            return try room.hasPages(for: change)
        }
    }

    /// Tries to commit a mutation alone, and answers it, unless there is no space for it: then it returns why.
    private func lackOfSpace(
        for pending: WaitingMutation, isLogged: Bool = true, listReserve: Int = 0
    ) throws(StorageFailure) -> StorageFailure? {
        // Each attempt makes commits of its own.
        noteWork()
        var group = Group(pending, now: surroundings.now)
        do throws(StorageFailure) {
            let results = try attempt(&group, isJoined: false, isLogged: isLogged, listReserve: listReserve)
            for result in results { answer(pending, result) }
            return nil
        } catch {
            guard error.isLackOfSpace else { throw error }
            return error
        }
    }

    /// What a mutation is told that finds no room alone.
    private func refusal(_ error: StorageFailure) -> ServiceError {
        guard error.isLackOfSpace, let holder = (try? storage.environment())?.holder else {
            return error.asServiceError
        }
        return ServiceError(.storageFull, detail: error.asServiceError.detail, "the storage is full: \(holder.remedy)")
    }

    /// Removes records of the log for a removal, more in each round. Returns false when none are left that may go, or
    /// when somebody reads an older snapshot: then the pages of the records could not be used.
    private func hasTrimmedLog(_ round: Int) -> Bool {
        let count = Limits.logRecordsTrimmedMin << min(round, 20)
        let hasTrimmed = try? writing { environment throws(StorageFailure) in
            if try !environment.waitForReaders(.zero), try !awaitReaders(environment, ListReserve.waitMax) {
                return false
            }
            return try trimLog(to: 0, count: count, environment)
        }
        return hasTrimmed == true
    }

    /// `isJoined`: whether waiting mutations join the group, in their turn, as long as it has room for them. One that
    /// finds no pages besides the others begins the next group. `listReserve`: neighbouring pages that were given up
    /// for the list of the pages that the commit frees.
    private func attempt(
        _ group: inout Group, isJoined: Bool, isLogged: Bool = true, listReserve: Int = 0
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>] {
        try writing { environment throws(StorageFailure) in
            try attempt(
                &group, isJoined: isJoined, isLogged: isLogged, listReserve: listReserve, in: environment)
        }
    }

    /// Calls `body` with the environment, after all of it was checked. Reports damage, and a failure that ends the use
    /// of it.
    func writing<R>(
        _ body: (StorageEnvironment) throws(StorageFailure) -> R
    ) throws(StorageFailure) -> R {
        let guarded = StorageGuard()
        let environment = try storage.environment()
        do throws(StorageFailure) {
            try environment.trust.waitForCheck()
            return try body(environment)
        } catch {
            if let fault = guarded.fault {
                // LMDB's memory is in an unknown state, so this process does not write any more.
                storage.health.report(.failed, "the writer has met damage, \(fault.action)")
                giveUp()
                throw fault
            }
            if let fault = environment.fault ?? environment.cut ?? environment.displacement {
                storage.health.report(.failed, fault.action)
                throw fault
            }
            if error.isPanic || environment.hasPanicked {
                storage.health.report(.failed, "a commit could not be written to the disk, \(error.text)")
            }
            if let unusable = error.unusable { storage.health.report(.failed, unusable) }
            if error.isFault { storage.health.report(.failed, error.action) }
            storage.health.note(error)
            throw error
        }
    }

    private func attempt(
        _ group: inout Group, isJoined: Bool, isLogged: Bool, listReserve: Int, in environment: StorageEnvironment
    ) throws(StorageFailure) -> [Result<MutationReceipt, ServiceError>] {
        var room = try room(for: group, in: environment)
        let began = MonotonicClock.nanoseconds
        let transaction = try WriteTransaction(in: environment, watch)
        let reserve = ListReserve(transaction, environment)
        if listReserve > 0 {
            try room.countRun(listReserve)
            try reserve.hold(listReserve, room.trees)
        }
        var applier = try Applier(transaction, environment)
        var results: [Result<MutationReceipt, ServiceError>] = []
        var isWritten = false
        var last = applier.sequence
        let recordsBefore = Int(last + 1 - applier.firstSequence)
        // Whether an addition has passed that was as large as one that was refused.
        var findsRoom = false
        // By how many bytes records become longer.
        var growing = 0
        var turn = ProcessorTurn(microseconds: Limits.processorTurnMicroseconds)
        while results.count < group.mutations.count || isJoined && state.withLock({ $0.take(into: &group) }) {
            let mutation = group.mutations[results.count].mutation
            var lack: Lack?
            var hasRoom = false
            let growth = try environment.growth(by: mutation.change)
            let needsSpace = needsSpace(mutation.change, growth, behind: growing)
            if needsSpace, !findsRoom, let need = fullness.need { hasRoom = try room.wouldHave(need) }
            switch try room.judge(mutation.change, needsSpace: needsSpace, isAlone: !isWritten) {
            case .passes: findsRoom = findsRoom || hasRoom
            case .lacks(let what): lack = what
            case .waits: postponeLast(of: &group)
            }
            if results.count == group.mutations.count { break }
            watch.proceed()
            // Into a damaged storage nothing is added.
            let refusal = lack?.error ?? (needsSpace ? storage.health.refusalOfAdditions : nil)
            let result = try applier.apply(mutation, lack: refusal, isLogged: isLogged)
            if case .success(let receipt) = result, !receipt.isRepeat {
                precondition(receipt.sequence == last + 1, "a mutation got a sequence out of order")
                (isWritten, last) = (true, receipt.sequence)
                growing += growth.bytes
            } else {
                room.giveBack()
                note(result, lack, last)
            }
            results.append(result)
            turn.endIfOver()
        }
        precondition(results.count <= Limits.mutationsPerCommitMax, "a group has too many mutations")
        // A group of refusals and repeats writes nothing, so it needs no commit.
        guard isWritten else { return results }
        watch.proceed()
        let hasRoom = growing > 0 ? try room.hasRoomForAdditions() : false
        let applied = surroundings.now()
        let trimmed = trimmedMax(mutations: results.count, recordsBefore: recordsBefore, in: room)
        // A log whose beginning is damaged stays as it is: a removal has to get through.
        try applier.finish(trimmingLogTo: UInt64(logShare(in: room)), count: trimmed) { storage.health.note($0) }
        if listReserve > 0 { try reserve.release(listOf: room.freed(by: transaction), room.trees) }
        watch.proceed()
        try commit(transaction, environment, of: results.count, last: last, began, isDiskFull: room.isDiskFull)
        noteGrowth(growing, hasRoom: hasRoom)
        if findsRoom { fullness.hasRoomAgain() }
        state.withLock { state in
            state.written = surroundings.now() - applied
            if results.count > 1 { state.aloneLast = 0 }
        }
        return results
    }

    /// Commits so many mutations, the last of which has the sequence `last`. `began`: when they began to be applied, in
    /// nanoseconds.
    func commit(
        _ transaction: WriteTransaction, _ environment: StorageEnvironment, of count: Int, last: UInt64,
        _ began: UInt64, isDiskFull: Bool
    ) throws(StorageFailure) {
        // What was answered with a failure meanwhile is not committed.
        guard !storage.health.hasFailed else { throw .failed("the storage has failed") }
        try check(surroundings.willCommit(), "committing")
        let written = MonotonicClock.nanoseconds
        try commit(transaction, environment, isDiskFull: isDiskFull)
        try check(surroundings.commitOutcome(), "committing")
        let ended = MonotonicClock.nanoseconds
        surroundings.didCommit(last)
        counted.withLock { $0.count(mutations: count, applying: written - began, writing: ended - written) }
        hasTriedEmptyCommit.store(false, ordering: .relaxed)
        commits.add(1, ordering: .relaxed)
        committed.add(UInt64(count), ordering: .relaxed)
    }

    /// Commits the first mutation of a group alone. The others wait again.
    private func commitFirstAlone(of group: Group) {
        if group.mutations.count > 1 {
            commitAloneForAWhile(isAgain: true)
            state.withLock { state in
                // Otherwise somebody else has answered them.
                if !state.isAbandoned { state.putBackAllButFirst() }
            }
        }
        commitAlone(group.mutations[0])
    }

    /// Takes the last mutation of the group out of it. It begins the next one.
    func postponeLast(of group: inout Group) {
        let next = group.removeLast()
        state.withLock { state in
            guard !state.isAbandoned else { return }
            state.inWork.removeLast()
            state.next = next
        }
    }

    /// Commits, and tells a lack of space from a failure of the disk: LMDB takes a write that the disk has cut short
    /// for a failure.
    func commit(
        _ transaction: WriteTransaction, _ environment: StorageEnvironment, isDiskFull: Bool = false
    ) throws(StorageFailure) {
        do throws(StorageFailure) {
            try transaction.commit()
        } catch {
            guard error.code == EIO, isDiskFull || environment.isDiskExhausted else { throw error }
            throw StorageFailure(ENOSPC, error.action)
        }
    }

    /// Notes a mutation that has changed nothing.
    private func note(_ result: Result<MutationReceipt, ServiceError>, _ lack: Lack?, _ last: UInt64) {
        switch result {
        case .success(let receipt):
            precondition(receipt.isRepeat && receipt.sequence <= last, "a mutation got a sequence out of order")
        case .failure(let error):
            if error.code == .storageFull, let lack { fullness.refused(lack) }
        }
    }

    /// The bytes of the change log: storages that share a log all keep as much as that was founded with. Half of the
    /// storage is left for something else, whatever that is.
    private var retentionBytes: Int {
        let own = configuration.changeLogBytesMax
        guard shared != nil, let founded = sharing.withLock({ $0.retentionBytes }) else { return own }
        return min(founded, configuration.sizeLimitBytes / 5 * 2)
    }

    // MARK: Room

    /// The room for the commit of a group. If its first mutation finds room only with the pages that the last commit
    /// has freed, an empty commit is made first. If it finds none because the change log is larger than it should be,
    /// the log is made shorter first, unless storages that share a log have to keep the same part of it.
    func room(
        for group: Group, in environment: StorageEnvironment
    ) throws(StorageFailure) -> CommitRoom {
        var room = try roomBehindListReserve(environment)
        guard let first = group.mutations.first?.mutation else { return room }
        let needsSpace = needsSpace(first.change, try environment.growth(by: first.change), behind: 0)
        do throws(StorageFailure) {
            if !hasTriedEmptyCommit.load(ordering: .relaxed),
                try room.fitsOnlyAfterEmptyCommit(first.change, needsSpace: needsSpace)
            {
                try commitNothing(environment)
                room = try newRoom(environment)
            }
            while shared == nil, needsSpace, try room.lacksRoom(for: first.change),
                try trimLog(to: logShare(in: room), count: Limits.logRecordsTrimmedMax, environment)
            {
                try commitNothing(environment)
                room = try newRoom(environment)
            }
        } catch {
            guard error.isLackOfSpace else { throw error }
        }
        return room
    }

    /// The bytes that the change log may have, less when the disk is full.
    private func logShare(in room: CommitRoom) -> Int {
        min(configuration.keepsWholeLog ? .max : retentionBytes, room.logShare ?? .max)
    }

    /// How many log records a commit removes at most. On a full disk it removes none that it has written itself.
    ///
    /// LMDB does not write pages that a commit has taken and given back. Behind the end of a full disk they would stay
    /// in the list of free pages without blocks, and each later commit that takes one of them would fail. While the
    /// records stay, the commit that writes them lacks space instead, and nothing of it is kept.
    private func trimmedMax(mutations: Int, recordsBefore: Int, in room: CommitRoom) -> Int {
        let count = Applier.trimmedRecordsMax(mutations: mutations)
        return room.isDiskFull ? min(count, recordsBefore) : count
    }

    func newRoom(_ environment: StorageEnvironment) throws(StorageFailure) -> CommitRoom {
        try CommitRoom(environment, reserveBytes: configuration.reserveBytes, logBytes: retentionBytes / 4 * 5)
    }

    /// Removes up to `count` of the oldest records of the change log while it has more than `bytes`, in a commit of its
    /// own. The last record stays. On a lack of space it removes fewer. Returns whether it has removed any.
    private func trimLog(to bytes: Int, count: Int, _ environment: StorageEnvironment) throws(StorageFailure) -> Bool {
        var count = count
        while true {
            do throws(StorageFailure) {
                let transaction = try WriteTransaction(in: environment, watch)
                var applier = try Applier(transaction, environment)
                let first = applier.firstSequence
                try applier.finish(trimmingLogTo: UInt64(bytes), count: count) { storage.health.note($0) }
                guard applier.firstSequence != first else { return false }
                try commit(transaction, environment)
                return true
            } catch {
                guard error.isLackOfSpace, count > 1 else { throw error }
                count /= 4
            }
        }
    }

    /// Makes an empty commit: it writes the totals as they are, because LMDB does not commit what wrote nothing. The
    /// next commit may then use the pages that the last one has freed.
    func commitNothing(_ environment: StorageEnvironment) throws(StorageFailure) {
        hasTriedEmptyCommit.store(true, ordering: .relaxed)
        let transaction = try WriteTransaction(in: environment)
        try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
        try commit(transaction, environment)
    }
}
