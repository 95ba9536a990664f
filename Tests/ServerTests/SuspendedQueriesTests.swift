import Collaboration
import Core
import Synchronization
import Testing

@testable import Server

/// A clock that stands still until the test sets it.
private final class StandingClock: Sendable {
    private let time = Mutex<UInt64>(0)
    var milliseconds: UInt64 { time.withLock { $0 } }
    func set(_ milliseconds: UInt64) { time.withLock { $0 = milliseconds } }
}

/// Queries of one connection, and how often they requested a worker.
private final class QueryFixture: Sendable {
    let requests: RequestFixture
    let queries: SuspendedQueries
    let clock = StandingClock()
    private let workerRequests = Mutex(0)

    init(suspensionsMax: Int = 8, topicsMax: Int = 16) async throws {
        requests = try await RequestFixture()
        queries = SuspendedQueries(
            clock: MonotonicClock { [clock] in clock.milliseconds }, suspensionsMax: suspensionsMax,
            topicsMax: topicsMax)
        queries.start { [weak self] in self?.workerRequests.withLock { $0 += 1 } }
    }

    /// How often a worker was requested.
    var workers: Int { workerRequests.withLock { $0 } }

    func suspension(on topics: Set<Topic>, deadline: UInt64 = 100) -> SuspendedQueries.Suspension {
        let task = CollaborationTask(
            ReadConsent(of: Account("ana")!), .random(), requests.request(), arrival: clock.milliseconds)
        return SuspendedQueries.Suspension(task: task, topics: topics, deadline: deadline, answer: [])
    }

    /// Answers a query that is no longer suspended: a request that nobody answers stops a debug build.
    func settle(_ task: CollaborationTask) {
        if task.pending.resume() { task.pending.answer { _ in } }
    }
}

private let ana = Topic.account(Account("ana")!)
private let ben = Topic.account(Account("ben")!)

@Suite struct SuspendedQueriesTests {
    @Test("A change after the decision resumes a query; a change before it or of another topic does not")
    func noChangeIsMissed() async throws {
        let fixture = try await QueryFixture()
        let queries = fixture.queries
        queries.notify([ana])
        let count = queries.changeCount
        queries.notify([ben])
        let first = fixture.suspension(on: [ana])
        #expect(try queries.suspend(first, decidedAt: count) == .suspended)
        queries.notify([ana])
        let second = fixture.suspension(on: [ana])
        #expect(try queries.suspend(second, decidedAt: count) == .changed)
        #expect(fixture.workers == 1 && queries.count == 1)
        let due = queries.takeDue()
        #expect(due.changed.map(ObjectIdentifier.init) == [ObjectIdentifier(first.task)])
        #expect(due.over.isEmpty && !due.hasMore && queries.count == 0)
        fixture.settle(first.task)
        second.task.pending.answer { _ in }
        fixture.requests.end()
    }

    @Test("A worker is requested once until it has taken all queries that are due")
    func oneWorker() async throws {
        let fixture = try await QueryFixture(suspensionsMax: 1000, topicsMax: 1000)
        let queries = fixture.queries
        let count = Limits.queriesPerTurn + 3
        let suspensions = (0..<count).map { _ in fixture.suspension(on: [ana]) }
        for suspension in suspensions { #expect(try queries.suspend(suspension, decidedAt: 0) == .suspended) }
        queries.notify([ben])
        #expect(fixture.workers == 0)
        queries.notify([ana])
        queries.notify([ana])
        #expect(fixture.workers == 1)
        let first = queries.takeDue()
        #expect(first.changed.count == Limits.queriesPerTurn && first.hasMore)
        queries.notify([ana])
        #expect(fixture.workers == 1)
        let second = queries.takeDue()
        #expect(second.changed.count == 3 && !second.hasMore)
        #expect(Set((first.changed + second.changed).map(ObjectIdentifier.init)).count == count)
        for suspension in suspensions { fixture.settle(suspension.task) }
        #expect(fixture.requests.admission.isIdle)
        fixture.requests.end()
    }

    @Test("A query is due at its deadline, and not a millisecond before")
    func deadline() async throws {
        let fixture = try await QueryFixture()
        let queries = fixture.queries
        let (early, late) = (fixture.suspension(on: [ana]), fixture.suspension(on: [ana], deadline: 101))
        for suspension in [early, late] { #expect(try queries.suspend(suspension, decidedAt: 0) == .suspended) }
        fixture.clock.set(99)
        try await Task.sleep(for: .milliseconds(120))
        #expect(fixture.workers == 0)
        fixture.clock.set(100)
        while fixture.workers == 0 { try await Task.sleep(for: .milliseconds(5)) }
        let due = queries.takeDue()
        #expect(due.changed.isEmpty)
        #expect(due.over.map { ObjectIdentifier($0.task) } == [ObjectIdentifier(early.task)])
        #expect(try queries.suspend(early, decidedAt: 0) == .over)
        for suspension in [early, late] { fixture.settle(suspension.task) }
        fixture.requests.end()
    }

    @Test("A query with a change at its deadline is evaluated again, not answered as it is")
    func changeAtTheDeadline() async throws {
        let fixture = try await QueryFixture()
        let suspension = fixture.suspension(on: [ana, ben])
        #expect(try fixture.queries.suspend(suspension, decidedAt: 0) == .suspended)
        fixture.queries.notify([ben])
        fixture.clock.set(100)
        let due = fixture.queries.takeDue()
        #expect(due.changed.count == 1 && due.over.isEmpty)
        fixture.settle(suspension.task)
        fixture.requests.end()
    }

    @Test("One query more than the limit is refused, and one topic more")
    func limits() async throws {
        let fixture = try await QueryFixture(suspensionsMax: 2, topicsMax: 3)
        let (first, second) = (fixture.suspension(on: [ana]), fixture.suspension(on: [ana]))
        for suspension in [first, second] {
            #expect(try fixture.queries.suspend(suspension, decidedAt: 0) == .suspended)
        }
        let third = fixture.suspension(on: [ana])
        #expect(throws: Admission.busy) { try fixture.queries.suspend(third, decidedAt: 0) }
        fixture.queries.notify([ana])
        for task in fixture.queries.takeDue().changed { fixture.settle(task) }
        let wide = fixture.suspension(on: [ana, ben])
        let count = fixture.queries.changeCount
        #expect(try fixture.queries.suspend(wide, decidedAt: count) == .suspended)
        let another = fixture.suspension(on: [ana, ben])
        #expect(throws: Admission.busy) { try fixture.queries.suspend(another, decidedAt: count) }
        for refused in [third, another] { refused.task.pending.answer { _ in } }
        fixture.requests.end()
    }

    @Test("Closing a connection discards its queries, and a shutdown makes all due")
    func ends() async throws {
        let (first, second) = (try await QueryFixture(), try await QueryFixture())
        #expect(try first.queries.suspend(first.suspension(on: [ana]), decidedAt: 0) == .suspended)
        first.requests.end()
        #expect(first.queries.count == 0 && first.requests.admission.isIdle)
        let suspension = second.suspension(on: [ana])
        #expect(try second.queries.suspend(suspension, decidedAt: 0) == .suspended)
        second.queries.close()
        #expect(second.workers == 1 && second.queries.takeDue().over.count == 1)
        second.settle(suspension.task)
        let late = second.suspension(on: [ana])
        #expect(try second.queries.suspend(late, decidedAt: 0) == .over)
        late.task.pending.answer { _ in }
        second.requests.end()
    }
}
