import Collaboration
import Core
import Dispatch
import Synchronization

/// The queries that wait until one of their topics changes.
///
/// Each leaves by one of four ways: a topic changes, its time is over, the service shuts down, or its connection is
/// closed. The first three make it *due*; a worker that was asked for takes the due ones with `takeDue`. So neither the
/// writer's thread nor the timer's answers anybody.
final class SuspendedQueries: Sendable {
    /// A query that waits.
    struct Suspension: Sendable {
        let task: CollaborationTask
        let topics: Set<Topic>
        /// In milliseconds of the service's clock.
        let deadline: UInt64
        /// What is answered when no topic changes before the deadline.
        let answer: [UInt8]
    }

    /// What became of a query that was to be suspended.
    enum Outcome: Sendable {
        case suspended
        /// A topic changed after the query was decided: it has to be decided again.
        case changed
        /// Its time is over, or the service is shutting down: it has to be answered as it is.
        case over
    }

    /// Queries for a worker to see to.
    struct Due: Sendable {
        /// Those to decide again.
        var changed: [CollaborationTask] = []
        /// Those to answer as they are.
        var over: [Suspension] = []
        /// Whether there are more: `takeDue` has to be called once more.
        var hasMore = false
    }

    private struct State {
        var table = SuspensionTable()
        var history = ChangeHistory()
        var isClosed = false
        /// Whether a worker was asked for and has not taken everything that is due.
        var isWorkerAwaited = false
        var askForWorker: (@Sendable () -> Void)?

        /// What asks for a worker, unless one was asked for; the caller calls it without the lock.
        mutating func workerRequest() -> (@Sendable () -> Void)? {
            defer { isWorkerAwaited = true }
            return isWorkerAwaited ? nil : askForWorker
        }
    }

    private let clock: MonotonicClock
    private let suspensionsMax: Int
    private let topicsMax: Int
    private let state = Mutex(State())
    /// Set in `init`, cancelled in `deinit`, not touched in between; Dispatch's sources may be used from any thread.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    /// `topicsMax`: of all suspensions together.
    init(clock: MonotonicClock, suspensionsMax: Int, topicsMax: Int) {
        self.clock = clock
        self.suspensionsMax = suspensionsMax
        self.topicsMax = topicsMax
        timer = DispatchSource.makeTimerSource()
        timer.schedule(deadline: .now() + .milliseconds(50), repeating: .milliseconds(50), leeway: .milliseconds(10))
        timer.setEventHandler { [weak self] in self?.checkDeadlines() }
        timer.resume()
    }

    deinit {
        timer.cancel()
    }

    /// To be called once, before the first query is suspended. `askForWorker` has `takeDue` called on a worker, until
    /// that has nothing more; it is called on any thread, and not again before.
    func start(askForWorker: @escaping @Sendable () -> Void) {
        state.withLock { state in
            precondition(state.askForWorker == nil)
            state.askForWorker = askForWorker
        }
    }

    /// Suspended queries.
    var count: Int { state.withLock { $0.table.count } }

    /// Changes of topics so far. To be read before the snapshot on which a query is decided.
    var changeCount: UInt64 { state.withLock { $0.history.count } }

    /// Suspends a query that was decided on a snapshot taken when there had been `changeCount` changes. No change is
    /// missed: one after that snapshot gives `changed`.
    ///
    /// Throws `busy` when too many queries are suspended, `limitExceeded` when too many of the connection are.
    func suspend(_ suspension: Suspension, decidedAt changeCount: UInt64) throws(ServiceError) -> Outcome {
        let outcome = try state.withLock { state throws(ServiceError) -> Outcome in
            guard !state.isClosed, clock.milliseconds < suspension.deadline else { return .over }
            guard !state.history.hasChange(of: suspension.topics, since: changeCount) else { return .changed }
            guard state.table.count < suspensionsMax, state.table.topicCount + suspension.topics.count <= topicsMax
            else { throw Admission.busy }
            let number = state.table.number()
            guard suspension.task.pending.suspend(onDrop: { [weak self] in self?.forget(number) }) else {
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

    /// The topics have changed: the queries that wait for one of them become due.
    func notify(_ topics: [Topic]) {
        let request = state.withLock { state -> (@Sendable () -> Void)? in
            state.history.append(topics)
            return state.table.markChanged(topics) ? state.workerRequest() : nil
        }
        request?()
    }

    /// Takes out queries that are due: at most `Limits.queriesPerTurn` that had a change, and as many whose time is
    /// over. On a worker that was asked for.
    func takeDue() -> Due {
        let now = clock.milliseconds
        return state.withLock { state in
            precondition(state.isWorkerAwaited)
            var due = Due()
            // Changes go first: a query whose time is over as well gets them, unless too many are ahead of it.
            due.changed = state.table.removeChanged(limit: Limits.queriesPerTurn).map(\.task)
            due.over =
                state.isClosed
                ? state.table.removeAny(limit: Limits.queriesPerTurn)
                : state.table.removeOver(at: now, limit: Limits.queriesPerTurn)
            due.hasMore =
                state.table.hasChanged || (state.isClosed ? state.table.count > 0 : state.table.isOver(at: now))
            state.isWorkerAwaited = due.hasMore
            return due
        }
    }

    private func checkDeadlines() {
        let now = clock.milliseconds
        state.withLock { $0.table.isOver(at: now) ? $0.workerRequest() : nil }?()
    }

    /// The query's connection is closed.
    private func forget(_ number: UInt64) {
        _ = state.withLock { $0.table.remove(number) }
    }

    /// All queries become due, and none is suspended from now on.
    func close() {
        let request = state.withLock { state in
            state.isClosed = true
            return state.table.count == 0 ? nil : state.workerRequest()
        }
        request?()
    }
}
