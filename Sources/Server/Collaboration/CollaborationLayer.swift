package import Collaboration
package import Core
import Foundation
import Hashing
package import RootSets
import Synchronization
import Verification
import Wire

extension Snapshot: RecordReader {
    package func hasSet(of collaboration: CollaborationIdentifier) throws(ServiceError) -> Bool {
        try summary(of: collaboration) != nil
    }

    package func isInSet(
        _ person: PersonIdentity, of collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Bool {
        try test([person.rootHash], in: collaboration)?.first ?? false
    }
}

/// Connects the collaboration layer with the service. A worker reads a snapshot and calls the rules. Their decision is
/// an answer, an edit for the writer, or that the query waits until a topic changes.
///
///     Pipeline -> CollaborationLayer -> rules -> PendingRequest
///                       ^                |---> RootSets -> PendingRequest, SuspendedQueries.notify
///                       |                '---> SuspendedQueries.suspend
///                       '----------------------------'  (due queries are decided again)
final class CollaborationLayer: Sendable {
    let resources: VerificationResources
    /// The way of all mutations.
    let storage: AuditedStorage
    let pool: WorkerPool
    let grants: GrantBook
    let queries: SuspendedQueries
    /// `nil` unless the service is one of a cluster.
    let lagging: LaggingRequests?
    /// The place of due queries in the worker pool's turns.
    private let dueQueries = WorkSource()
    private let settings: CollaborationSettings
    let random: RandomSource
    /// The clock by which queries wait.
    private let clock: MonotonicClock
    let wallClock: @Sendable () -> Date

    init(
        _ resources: VerificationResources, _ storage: AuditedStorage, _ pool: WorkerPool,
        _ settings: CollaborationSettings,
        grants: GrantBook, queries: SuspendedQueries, lagging: LaggingRequests?, clock: MonotonicClock,
        wallClock: @escaping @Sendable () -> Date,
        random: RandomSource
    ) {
        self.resources = resources
        self.storage = storage
        self.pool = pool
        self.settings = settings
        self.random = random
        self.wallClock = wallClock
        self.grants = grants
        self.clock = clock
        self.queries = queries
        self.lagging = lagging
        queries.start { [weak self] in self?.askForWorker() }
    }

    // MARK: Requests in JSON

    /// Queues a request, which was read from the call, for a worker. A full queue answers it with `busy`.
    ///
    /// Throws `internalFault` without a request.
    func handle(
        _ call: CollaborationCall, _ request: (any RuledRequest)?, _ pending: PendingRequest
    ) throws(ServiceError) {
        guard let request else { throw ServiceError(.internalFault, "the request was not read") }
        enqueue([
            CollaborationTask(
                request, call, pending, arrival: clock.milliseconds, logArrival: resources.rootSets.logTime)
        ])
    }

    /// Queues tasks, which a worker then decides: one task, or several with equal queries.
    private func enqueue(_ tasks: [CollaborationTask]) {
        guard let first = tasks.first else { return }
        for task in tasks { task.pending.begin(.queued) }
        if !pool.submit(from: first.pending.source, first.kind, task: { self.decide(tasks) }) {
            // The first task's peer may have no places left, and another one some.
            if tasks.count > 1 { for task in tasks { enqueue([task]) } } else { first.pending.fail(Admission.busy) }
        }
    }

    /// Reads a snapshot, decides the first task by the rules, and carries out the decision for all tasks.
    private func decide(_ tasks: [CollaborationTask]) {
        // A query whose connection is closed needs no answer. An edit is made all the same.
        var tasks = tasks.filter { !$0.isQuery || !$0.pending.isConnectionClosed }
        for task in tasks { task.pending.begin(.working) }
        let refused = refuseWithoutMemory(tasks)
        tasks.removeFirst(refused)
        guard let first = tasks.first else { return }
        let changeCount = queries.changeCount
        let moment = resources.rootSets.moment
        let decided: Decided
        do throws(ServiceError) {
            decided = try self.decision(on: first, moment)
        } catch {
            for task in tasks { fail(task, error, moment) }
            return
        }
        switch decided.decision {
        case .answer(let body) where first.isQuery || decided.isRepetition: answer(tasks, body)
        case .answer(let body): for task in tasks { answerIfKnown(task, body, moment) }
        case .edit(let edit, let topics, let body):
            for task in tasks {
                // Every request but a query has an identity, and the decision on a query is never an edit.
                guard let identity = task.identity else {
                    task.pending.fail(ServiceError(.internalFault, "a query would change something"))
                    continue
                }
                submit(edit, as: identity, changing: topics, task, body)
            }
        case .note(let edit, let body):
            for task in tasks {
                guard let identity = task.identity else {
                    task.pending.fail(ServiceError(.internalFault, "a query would be remembered"))
                    continue
                }
                submit(edit, as: identity, changing: [], task, withoutRoom: (body(nil), moment)) { body($0.sequence) }
            }
        case .wait(let topics, let milliseconds, let body):
            for task in tasks {
                suspend(
                    SuspendedQueries.Suspension(
                        task: task, topics: Set(topics), deadline: task.arrival + UInt64(milliseconds), answer: body),
                    decidedAt: changeCount, moment)
            }
        }
    }

    /// Fails a task whose decision has failed on data as of a moment. When others may have made it possible, it is
    /// decided again on data that have what they had changed when the request arrived.
    private func fail(_ task: CollaborationTask, _ error: ServiceError, _ moment: ReadMoment) {
        guard error.code.isAboutData else {
            return task.pending.fail(error, lacking: .someChange, unlessKeptBy: lagging, task.patience) {
                self.enqueue([task])
            }
        }
        task.pending.answerIfKnown(as: moment, since: task.logArrival, keptBy: lagging, task.patience) {
            task.pending.fail(error)
        } retry: {
            self.enqueue([task])
        }
    }

    /// Answers a task that changes nothing, by data as of a moment. The change that it asks for is not needed or not
    /// possible: when others may have made it so, it is decided again, as in `fail`.
    private func answerIfKnown(_ task: CollaborationTask, _ body: [UInt8], _ moment: ReadMoment) {
        task.pending.answerIfKnown(as: moment, since: task.logArrival, keptBy: lagging, task.patience) {
            self.answer([task], body)
        } retry: {
            self.enqueue([task])
        }
    }

    /// Reserves memory for the answer to the first of the tasks for which there is some. Answers those before it with
    /// `busy`, and returns their number.
    private func refuseWithoutMemory(_ tasks: [CollaborationTask]) -> Int {
        for (number, task) in tasks.enumerated() {
            do throws(ServiceError) {
                try task.pending.reserveAnswer(task.isQuery ? Limits.layerAnswerBytes : Limits.layerReceiptBytes)
                return number
            } catch {
                task.pending.fail(error)
            }
        }
        return tasks.count
    }

    /// Decides a query on this thread, for whoever operates the service: no role is checked, and nothing is counted.
    ///
    /// Throws the error that a peer would get, or `internalFault` for a request that is no query or waits.
    func look<Query: RuledRequest>(_ query: Query) throws(ServiceError) -> Query.Answer {
        guard Query.isQuery else { throw ServiceError(.internalFault, "\(Query.name) is no query") }
        try resources.rootSets.admit(reading: .records)
        return try resources.rootSets.read { snapshot throws(ServiceError) in
            guard case .answer(let answer) = try query.decide(context(earlier: nil), snapshot) else {
                throw ServiceError(.internalFault, "\(Query.name) waits for a change")
            }
            return answer
        }
    }

    private func context(earlier: UInt64?) -> RuleContext {
        RuleContext(
            now: wallClock(), random: random, sha256: { SHA256.hash($0) }, settings: settings, earlier: earlier,
            grants: grants, isShared: lagging != nil)
    }

    /// What was decided on a task.
    private struct Decided {
        let decision: EncodedDecision
        /// Whether the same request was applied before. Then its answer is known, whatever others have changed.
        let isRepetition: Bool
    }

    /// The decision on a task, which is no older than others' changes may be. `moment`: taken before.
    private func decision(on task: CollaborationTask, _ moment: ReadMoment) throws(ServiceError) -> Decided {
        let decided: Decided = try resources.rootSets.read { snapshot throws(ServiceError) in
            let earlier = try self.earlier(task, in: snapshot)
            return Decided(decision: try decideNow(task, earlier, in: snapshot), isRepetition: earlier != nil)
        }
        try resources.rootSets.checkFresh(moment)
        return decided
    }

    /// `earlier`: the sequence at which the same request was applied before; `nil` when it was not.
    private func decideNow(
        _ task: CollaborationTask, _ earlier: UInt64?, in snapshot: borrowing Snapshot
    ) throws(ServiceError) -> EncodedDecision {
        if let earlier, let answer = try task.request.encodedAnswer(toRepetitionOf: earlier) {
            return .answer(answer)
        }
        let decision = try task.request.decideEncoded(context(earlier: earlier), snapshot)
        guard let earlier else { return decision }
        switch decision {
        case .answer, .wait: return decision
        // The repetition changes nothing, as the first request.
        case .note(_, let body): return .answer(body(earlier))
        case .edit(let edit, _, let body) where edit.isEmpty:
            return .answer(body(MutationReceipt(sequence: earlier, changed: 0, isRepeat: true)))
        case .edit:
            throw ServiceError(
                .mutationConflict,
                "mutation \(task.identifier) was applied before, and its effect is gone: choose a fresh identifier")
        }
    }

    /// The sequence at which the same request was applied before; `nil` when it was not.
    ///
    /// Throws `mutationConflict` when its identifier was used for another content.
    private func earlier(
        _ task: CollaborationTask, in snapshot: borrowing Snapshot
    ) throws(ServiceError) -> UInt64? {
        guard let identity = task.identity, let applied = try snapshot.applied(identity.mutation) else { return nil }
        guard applied.request == identity.request else { throw task.conflict }
        return applied.sequence
    }

    private func answer(_ tasks: [CollaborationTask], _ body: [UInt8]) {
        guard body.count <= Limits.frameBodyBytesMax else {
            let error = ServiceError(
                .limitExceeded, detail: UInt32(Limits.frameBodyBytesMax),
                "the answer would have \(body.count) bytes: ask for a smaller page")
            for task in tasks { task.pending.fail(error) }
            return
        }
        PendingRequest.answer(tasks.map(\.pending), body)
    }

    /// Hands an edit to the writer. When the edit is durable, answers the request and notifies the queries that wait
    /// for a change of the topics. `withoutRoom`: the answer when the storage is full, and the
    /// moment as of which it is right; `nil`: the request fails then.
    private func submit(
        _ edit: Edit, as identity: RequestIdentity, changing topics: [Topic], _ task: CollaborationTask,
        withoutRoom: (answer: [UInt8], moment: ReadMoment)? = nil,
        _ body: @escaping @Sendable (MutationReceipt) -> [UInt8]
    ) {
        let derived = Topic.changed(by: edit)
        assert(
            derived.isSuperset(of: topics),
            "what \(task.request) changes is not told by its records alone: \(topics) \(derived)")
        task.pending.begin(.committing)
        var edit = edit
        edit.request = identity.request
        storage.submit(Mutation(identifier: identity.mutation, .edit(edit)), for: task.pending) { [self] result in
            switch result {
            case .success(let receipt) where receipt.isRepeat:
                // Two copies of the request were decided at the same time, and the other one was applied. Decide this
                // one again, on data that contain the other one's change.
                enqueue([task])
            case .success(let receipt):
                task.pending.answerChange { $0.append(contentsOf: body(receipt)) }
                queries.notify(topics)
            case .failure(let error) where error.code == .staleEdit:
                // Another edit has changed the data that the decision depends on. Decide again.
                let count = task.staleCount.add(1, ordering: .relaxed).newValue
                if count < Limits.decisionsPerRequestMax { enqueue([task]) } else { task.pending.fail(error) }
            case .failure(let error):
                refused(task, error, withoutRoom)
            }
        }
    }

    /// Answers a task whose edit was not made. `withoutRoom`: see `submit`.
    private func refused(
        _ task: CollaborationTask, _ error: ServiceError, _ withoutRoom: (answer: [UInt8], moment: ReadMoment)?
    ) {
        switch error.code {
        case .storageFull:
            guard let (answer, moment) = withoutRoom else { return task.pending.fail(error) }
            answerIfKnown(task, answer, moment)
        // A request with other content was decided at the same time, and was applied first.
        case .mutationConflict: task.pending.fail(task.conflict)
        default: task.pending.fail(error)
        }
    }

    // MARK: Suspended queries

    /// `changeCount` and `moment`: read before the query was decided.
    private func suspend(
        _ suspension: SuspendedQueries.Suspension, decidedAt changeCount: UInt64, _ moment: ReadMoment
    ) {
        do throws(ServiceError) {
            switch try queries.suspend(suspension, decidedAt: changeCount) {
            case .suspended: break
            case .changed:
                // Under so many changes the query is answered as it is; its client asks again.
                let count = suspension.task.staleCount.add(1, ordering: .relaxed).newValue
                if count < Limits.decisionsPerRequestMax {
                    enqueue([suspension.task])
                } else {
                    answerUnchanged(suspension, moment)
                }
            case .over: answerUnchanged(suspension, moment)
            }
        } catch {
            suspension.task.pending.fail(error)
        }
    }

    /// Answers a query of which no topic has changed, as far as this service knows: it may not know.
    /// `moment`: taken before the query was found unchanged.
    private func answerUnchanged(_ suspension: SuspendedQueries.Suspension, _ moment: ReadMoment) {
        do throws(ServiceError) {
            try resources.rootSets.checkFresh(moment)
            answer([suspension.task], suspension.answer)
        } catch {
            suspension.task.pending.fail(error)
        }
    }

    /// Queues a task for a worker that resumes the due queries. The pool takes it even when it is full, because there
    /// is at most one such task.
    private func askForWorker() {
        pool.submitAlways(from: dueQueries, .following) { [self] in resumeDueQueries() }
    }

    /// Answers the queries whose time is over, and decides again those of which a topic changed. Equal queries are
    /// decided together. Their number in one task is limited, because proofs wait while a long task runs.
    private func resumeDueQueries() {
        let moment = resources.rootSets.moment
        let due = queries.takeDue()
        if due.hasMore { askForWorker() }
        for suspension in due.over where suspension.task.pending.resume() {
            answerUnchanged(suspension, moment)
        }
        var equal: [AnyHashable: [CollaborationTask]] = [:]
        for task in due.changed where task.pending.resume() {
            do throws(ServiceError) {
                try task.pending.reserveAgain()
                try RoleCheck.checkAgain(task.request, task.pending)
                equal[AnyHashable(task.request), default: []].append(task)
            } catch {
                task.pending.fail(error)
            }
        }
        for tasks in equal.values {
            for start in stride(from: 0, to: tasks.count, by: Limits.queriesPerDecisionMax) {
                enqueue(Array(tasks[start...].prefix(Limits.queriesPerDecisionMax)))
            }
        }
    }

    /// Shuts the layer down: all suspended queries are answered, and no query is suspended from now on.
    func close() {
        queries.close()
    }
}
