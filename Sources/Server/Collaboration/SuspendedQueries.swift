import Collaboration
import Core

/// The queries that wait until one of their topics changes.
///
/// A query's suspension ends in one of four ways: a topic changes, its time is over, the service shuts down, or its
/// connection is closed. The first three make the query *due*. Then a worker is requested, which takes the due queries
/// with `takeDue` and answers them. The writer's thread and the timer's thread answer no query.
final class SuspendedQueries: Sendable {
    /// A suspended query.
    struct Suspension: Sendable {
        let task: CollaborationTask
        let topics: Set<Topic>
        /// In milliseconds of the service's clock.
        let deadline: UInt64
        /// The answer if no topic changes before the deadline.
        let answer: [UInt8]
        /// Whose places the query takes. A connection may become another peer's while it is suspended.
        let owner: Holder

        init(task: CollaborationTask, topics: Set<Topic>, deadline: UInt64, answer: [UInt8]) {
            self.task = task
            self.topics = topics
            self.deadline = deadline
            self.answer = answer
            owner = task.pending.owner
        }
    }

    /// The result of `suspend`.
    enum Outcome: Sendable {
        case suspended
        /// A topic changed after the query's snapshot was taken: the caller decides the query again.
        case changed
        /// The query's time is over, or the service is shutting down: the caller answers the query without a change.
        case over
    }

    /// Due queries, for a worker.
    struct Due: Sendable {
        /// Queries to decide again, because a topic changed.
        var changed: [CollaborationTask] = []
        /// Queries to answer without a change.
        var over: [Suspension] = []
        /// Whether more queries are due: then `takeDue` has to be called once more.
        var hasMore = false
    }

    private struct State {
        var table = SuspensionTable()
        var history = ChangeHistory()
        /// The places of queries and of their topics.
        var places: PeerShares
        var topicPlaces: PeerShares
        /// Queries whose connections are closed. A worker removes them, because they may have many topics.
        var forgotten = Queue<UInt64>()
        var isClosed = false
        /// Whether a worker was requested and has not taken all due queries yet.
        var isWorkerAwaited = false
        var askForWorker: (@Sendable () -> Void)?

        /// The function that requests a worker; `nil` when one is requested already. The caller calls it after it has
        /// released the lock.
        mutating func workerRequest() -> (@Sendable () -> Void)? {
            defer { isWorkerAwaited = true }
            return isWorkerAwaited ? nil : askForWorker
        }

        /// Takes the places of a query. Returns false, and takes none, when it is above its owner's share.
        mutating func takePlaces(of suspension: Suspension) -> Bool {
            guard places.take(1, by: suspension.owner) else { return false }
            guard topicPlaces.take(suspension.topics.count, by: suspension.owner) else {
                places.giveBack(1, by: suspension.owner)
                return false
            }
            return true
        }

        mutating func giveBackPlaces(of suspension: Suspension) {
            places.giveBack(1, by: suspension.owner)
            topicPlaces.giveBack(suspension.topics.count, by: suspension.owner)
        }

        /// Removes some of the queries whose connections are closed.
        mutating func removeForgotten() {
            var left = Limits.topicsRemovedPerTurn
            while left > 0, let number = forgotten.popFirst() {
                left -= 1
                guard let suspension = table.remove(number) else { continue }
                giveBackPlaces(of: suspension)
                left -= suspension.topics.count
            }
        }
    }

    private let clock: MonotonicClock
    private let state: Lock<State>
    /// Looks for queries whose time is over.
    private let timer = Lock<RepeatingTimer?>(nil)

    /// `topicsMax`: of all suspensions together. Peers share both (`Shares`).
    init(clock: MonotonicClock, timers: Timers = .system, suspensionsMax: Int, topicsMax: Int) {
        self.clock = clock
        state = Lock(
            State(places: PeerShares(capacity: suspensionsMax), topicPlaces: PeerShares(capacity: topicsMax)))
        let timer = timers.every(milliseconds: 50, leeway: 10) { [weak self] in self?.checkDeadlines() }
        self.timer.withLock { $0 = timer }
    }

    /// To be called once, before the first query is suspended. `askForWorker` makes a worker call `takeDue` until no
    /// more queries are due. It is called on any thread, and not again before that worker has finished.
    func start(askForWorker: @escaping @Sendable () -> Void) {
        state.withLock { state in
            precondition(state.askForWorker == nil)
            state.askForWorker = askForWorker
        }
    }

    /// Suspended queries.
    var count: Int { state.withLock { $0.table.count } }

    /// The number of changes of topics so far. A caller reads it before it takes the snapshot of a decision.
    var changeCount: UInt64 { state.withLock { $0.history.count } }

    /// Suspends a query. `changeCount` was read before the snapshot on which the query was decided. No change is
    /// missed: a change of one of its topics since then gives `changed`.
    ///
    /// Throws `busy` when the query is above its owner's share or limit, `limitExceeded` when too many of this
    /// connection are suspended, or the limit is 0.
    func suspend(_ suspension: Suspension, decidedAt changeCount: UInt64) throws(ServiceError) -> Outcome {
        let outcome = try state.withLock { state throws(ServiceError) -> Outcome in
            guard !state.isClosed, clock.milliseconds < suspension.deadline else { return .over }
            guard !state.history.hasChange(of: suspension.topics, since: changeCount) else { return .changed }
            try suspension.task.pending.follow()
            guard state.takePlaces(of: suspension) else { throw Admission.busy }
            let number = state.table.number()
            guard suspension.task.pending.suspend(onDrop: { [weak self] in self?.forget(number) }) else {
                state.giveBackPlaces(of: suspension)
                throw ServiceError(
                    .limitExceeded, detail: UInt32(Limits.followsPerConnectionMax),
                    """
                    this connection has \(Limits.followsPerConnectionMax) requests that wait for changes already: \
                    use another connection
                    """)
            }
            state.table.insert(suspension, number: number)
            return .suspended
        }
        // Without the lock: it may wake the connection's loop.
        if outcome == .suspended { suspension.task.pending.resumeReading() }
        return outcome
    }

    /// Makes the queries due that wait for a change of one of the topics.
    func notify(_ topics: [Topic]) {
        let request = state.withLock { state -> (@Sendable () -> Void)? in
            state.history.append(topics)
            return state.table.markChanged(topics) ? state.workerRequest() : nil
        }
        request?()
    }

    /// Removes and returns due queries: at most `Limits.queriesPerTurn` because of a change, and as many because of
    /// their deadline. Called on the worker that was requested.
    func takeDue() -> Due {
        let now = clock.milliseconds
        return state.withLock { state in
            precondition(state.isWorkerAwaited)
            var due = Due()
            state.removeForgotten()
            // Changes go first: a query whose time is over as well gets them, unless too many are ahead of it.
            let changed = state.table.removeChanged(limit: Limits.queriesPerTurn)
            due.changed = changed.map(\.task)
            due.over =
                state.isClosed
                ? state.table.removeAny(limit: Limits.queriesPerTurn)
                : state.table.removeOver(at: now, limit: Limits.queriesPerTurn)
            for suspension in changed + due.over { state.giveBackPlaces(of: suspension) }
            due.hasMore =
                state.table.hasChanged || !state.forgotten.isEmpty
                || (state.isClosed ? state.table.count > 0 : state.table.isOver(at: now))
            state.isWorkerAwaited = due.hasMore
            return due
        }
    }

    private func checkDeadlines() {
        let now = clock.milliseconds
        state.withLock { $0.table.isOver(at: now) ? $0.workerRequest() : nil }?()
    }

    /// Ends the suspension of a query whose connection is closed. The loop's thread that closes it only notes that.
    private func forget(_ number: UInt64) {
        let request = state.withLock { state in
            state.forgotten.append(number)
            return state.workerRequest()
        }
        request?()
    }

    /// Makes all queries due. No query is suspended from now on.
    func close() {
        let request = state.withLock { state in
            state.isClosed = true
            return state.table.count == 0 ? nil : state.workerRequest()
        }
        request?()
    }
}
