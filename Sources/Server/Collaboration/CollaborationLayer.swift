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

/// One request of the layer, until it is answered.
final class CollaborationTask: Sendable {
    let request: any RuledRequest
    let identifier: MutationIdentifier
    let ticket: Ticket
    /// How often it was decided again because what it was decided on had changed.
    let staleCount = Atomic<Int>(0)
    /// When it stops waiting for news, in milliseconds of the service's clock; 0 before it began to.
    let deadline = Atomic<UInt64>(0)

    init(_ request: any RuledRequest, _ identifier: MutationIdentifier, _ ticket: Ticket) {
        self.request = request
        self.identifier = identifier
        self.ticket = ticket
    }
}

/// The collaboration layer's place in the service: it reads a snapshot, has the rules decide, and sees to what they
/// decided: an answer, an edit for the writer, or waiting for news. The gate knows nothing of it.
///
///     Pipeline -> CollaborationLayer -> rules -> Ticket | RootSets -> Followers -> Ticket
final class CollaborationLayer: Sendable {
    let gate: Gate
    let pool: WorkerPool
    let grants: GrantBook
    let followers: Followers
    private let settings: CollaborationSettings
    private let random: RandomSource
    let wallClock: @Sendable () -> Date

    init(
        _ gate: Gate, _ pool: WorkerPool, _ settings: CollaborationSettings, grantMilliseconds: UInt64,
        followers: Followers, clock: MonotonicClock, wallClock: @escaping @Sendable () -> Date, random: RandomSource
    ) {
        self.gate = gate
        self.pool = pool
        self.settings = settings
        self.random = random
        self.wallClock = wallClock
        grants = GrantBook(validMilliseconds: grantMilliseconds, clock: clock, random: random)
        self.followers = followers
    }

    // MARK: Requests in JSON

    /// Sees to a request. Throws why it can't be read.
    func handle(_ call: CollaborationCall, _ ticket: Ticket) throws(ServiceError) {
        let request = try Requests.parse(call.name, call.json)
        enqueue([CollaborationTask(request, call.identifier, ticket)])
    }

    /// Has tasks decided together: one, or several that ask the same question.
    private func enqueue(_ tasks: [CollaborationTask]) {
        guard let source = tasks.first?.ticket.source else { return }
        if !pool.submit(from: source, task: { self.decide(tasks) }) {
            for task in tasks { task.ticket.fail(Admission.busy) }
        }
    }

    /// On a worker.
    private func decide(_ tasks: [CollaborationTask]) {
        guard let first = tasks.first else { return }
        let newsCount = followers.newsCount
        do throws(ServiceError) {
            try first.ticket.checkRoom()
            try carryOut(try decision(first), tasks, decidedAt: newsCount)
        } catch {
            for task in tasks { task.ticket.fail(error) }
        }
    }

    private func decision(_ task: CollaborationTask) throws(ServiceError) -> EncodedDecision {
        let isQuery = type(of: task.request).isQuery
        return try gate.rootSets.read { snapshot throws(ServiceError) in
            let earlier = isQuery ? nil : try snapshot.sequence(ofEdit: task.identifier)
            if let earlier, let answer = try task.request.encodedAnswer(toRepetitionOf: earlier) {
                return .answer(answer)
            }
            let context = RuleContext(
                now: wallClock(), random: random, sha256: { SHA256.hash($0) }, settings: settings, earlier: earlier,
                grants: grants)
            let decision = try task.request.decideEncoded(context, snapshot)
            if earlier != nil, case .edit = decision {
                throw ServiceError(
                    .mutationConflict,
                    "mutation \(task.identifier) was applied before, and what it did is gone: choose a fresh identifier"
                )
            }
            return decision
        }
    }

    /// `newsCount`: the followers' from before the decision.
    ///
    /// Throws why none of the tasks can be answered as was decided.
    private func carryOut(
        _ decision: EncodedDecision, _ tasks: [CollaborationTask], decidedAt newsCount: UInt64
    ) throws(ServiceError) {
        switch decision {
        case .answer(let bytes):
            guard bytes.count <= Limits.frameBodyBytesMax else {
                throw ServiceError(
                    .limitExceeded, detail: UInt32(Limits.frameBodyBytesMax),
                    "the answer would have \(bytes.count) bytes: ask for a smaller page")
            }
            Ticket.answer(tasks.map(\.ticket), bytes)
        case .edit(let edit, let topics, let answer):
            for task in tasks { submit(edit, topics, answer, task) }
        case .wait(let topics, let milliseconds, let answer):
            for task in tasks {
                do throws(ServiceError) {
                    try wait(task, topics, milliseconds, answer, decidedAt: newsCount)
                } catch {
                    task.ticket.fail(error)
                }
            }
        }
    }

    private func submit(
        _ edit: Edit, _ topics: [Topic], _ answer: @escaping @Sendable (MutationReceipt) -> [UInt8],
        _ task: CollaborationTask
    ) {
        gate.rootSets.submit(Mutation(identifier: task.identifier, .edit(edit))) { [self] result in
            switch result {
            case .success(let receipt) where receipt.isRepeat:
                // The same request came twice at the same moment: look what the other one did.
                enqueue([task])
            case .success(let receipt):
                task.ticket.answer { $0.append(contentsOf: answer(receipt)) }
                spread(topics)
            case .failure(let error) where error.code == .staleEdit:
                // Somebody else was quicker.
                let count = task.staleCount.add(1, ordering: .relaxed).newValue
                if count < Limits.decisionsPerRequestMax { enqueue([task]) } else { task.ticket.fail(error) }
            case .failure(let error): task.ticket.fail(error)
            }
        }
    }

    // MARK: Waiting for news

    /// Has the request wait, and decides once more if there was news in between, which told nobody.
    private func wait(
        _ task: CollaborationTask, _ topics: [Topic], _ milliseconds: Int, _ answer: [UInt8],
        decidedAt newsCount: UInt64
    ) throws(ServiceError) {
        let now = grants.now
        let deadline = task.deadline.compareExchange(
            expected: 0, desired: now + UInt64(milliseconds), ordering: .relaxed)
        let end = deadline.exchanged ? now + UInt64(milliseconds) : deadline.original
        guard now < end else { return task.ticket.answer { $0.append(contentsOf: answer) } }
        var topics = Set(topics)
        var newsCount = newsCount
        guard task.ticket.park() else {
            throw ServiceError(
                .limitExceeded, detail: UInt32(Limits.followsPerConnectionMax),
                "this connection has \(Limits.followsPerConnectionMax) requests that wait for news already: open another"
            )
        }
        while true {
            let follower = Followers.Follower(request: task, topics: topics, deadline: end, answer: answer)
            do throws(ServiceError) {
                guard try followers.add(follower) else { return task.ticket.answerParked(answer) }
            } catch {
                task.ticket.unpark()
                throw error
            }
            let newCount = followers.newsCount
            guard newCount != newsCount else { return }
            newsCount = newCount
            let decision: EncodedDecision
            do throws(ServiceError) {
                decision = try self.decision(task)
            } catch {
                guard followers.take(task) else { return }
                task.ticket.unpark()
                throw error
            }
            if case .wait(let others, _, _) = decision {
                guard !Set(others).isSubset(of: topics) else { return }
                topics.formUnion(others)
                guard followers.take(task) else { return }
                continue
            }
            // Whoever takes it sees to it: this thread, or one that had news at the same moment.
            guard followers.take(task) else { return }
            task.ticket.unpark()
            return try carryOut(decision, [task], decidedAt: newsCount)
        }
    }

    /// Has those decided again who wait for one of the topics; who ask the same, together.
    private func spread(_ topics: [Topic]) {
        var byQuestion: [AnyHashable: [CollaborationTask]] = [:]
        for task in followers.take(topics) {
            task.ticket.unpark()
            do throws(ServiceError) {
                try task.ticket.checkRoomForNews()
                byQuestion[AnyHashable(task.request), default: []].append(task)
            } catch {
                task.ticket.fail(error)
            }
        }
        // A few at a time: one worker's answers to a crowd would hold up the gate.
        for tasks in byQuestion.values {
            for start in stride(from: 0, to: tasks.count, by: Limits.queriesPerDecisionMax) {
                enqueue(Array(tasks[start...].prefix(Limits.queriesPerDecisionMax)))
            }
        }
    }

    /// The service is shutting down: nobody waits any more.
    func close() {
        followers.close()
    }
}
