import Collaboration
import Core
import TestSupport
import Testing
import Wire

@testable import Server

/// A clock that stands still until the test sets it.
private final class StandingClock: Sendable {
    private let time = Lock<UInt64>(0)
    var milliseconds: UInt64 { time.withLock { $0 } }
    func set(_ milliseconds: UInt64) { time.withLock { $0 = milliseconds } }
}

/// Queries of one connection, and how often they requested a worker.
private final class QueryFixture: Sendable {
    let requests: RequestFixture
    let queries: SuspendedQueries
    let clock = StandingClock()
    private let workerRequests = Lock(0)

    init(suspensionsMax: Int = 8, topicsMax: Int = 16) async throws {
        requests = try await RequestFixture()
        queries = SuspendedQueries(
            clock: MonotonicClock { [clock] in clock.milliseconds }, suspensionsMax: suspensionsMax,
            topicsMax: topicsMax)
        queries.start { [weak self] in self?.workerRequests.withLock { $0 += 1 } }
    }

    /// How often a worker was requested.
    var workers: Int { workerRequests.withLock { $0 } }

    func suspension(
        on topics: Set<Topic>, deadline: UInt64 = 100, of other: RequestFixture? = nil
    ) -> SuspendedQueries.Suspension {
        let call = CollaborationCall(identifier: .random(), name: ReadConsent.name, json: [])
        let task = CollaborationTask(
            ReadConsent(of: Account("ana")!), call, (other ?? requests).request(), arrival: clock.milliseconds,
            logArrival: nil)
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

    @Test("One query more than a peer's share is refused, and one topic more")
    func limits() async throws {
        let fixture = try await QueryFixture(suspensionsMax: 4, topicsMax: 6)
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
        // What was refused took no place.
        let narrow = fixture.suspension(on: [ana])
        #expect(try fixture.queries.suspend(narrow, decidedAt: count) == .suspended)
        for refused in [third, another] { refused.task.pending.answer { _ in } }
        fixture.requests.end()
    }

    @Test("Closing a connection discards its queries, and a shutdown makes all due")
    func ends() async throws {
        let (first, second) = (try await QueryFixture(), try await QueryFixture())
        #expect(try first.queries.suspend(first.suspension(on: [ana]), decidedAt: 0) == .suspended)
        first.requests.end()
        #expect(first.requests.admission.isIdle)
        // The event loop only notes the end; a worker removes the query.
        #expect(first.queries.count == 1 && first.workers == 1)
        let due = first.queries.takeDue()
        #expect(due.changed.isEmpty && due.over.isEmpty && !due.hasMore)
        #expect(first.queries.count == 0)
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

    @Test("One connection's queries leave places for another peer's, and come back when the connection is closed")
    func shares() async throws {
        let fixture = try await QueryFixture(suspensionsMax: 30, topicsMax: 1000)
        let other = try await RequestFixture(owner: .address(UInt32(2)))
        let queries = fixture.queries
        for _ in 0..<15 {
            #expect(try queries.suspend(fixture.suspension(on: [ana]), decidedAt: 0) == .suspended)
        }
        let surplus = fixture.suspension(on: [ana])
        #expect(throws: Admission.busy) { try queries.suspend(surplus, decidedAt: 0) }
        surplus.task.pending.answer { _ in }
        for _ in 0..<8 {
            let suspension = fixture.suspension(on: [ben], of: other)
            #expect(try queries.suspend(suspension, decidedAt: 0) == .suspended)
        }
        fixture.requests.end()
        while queries.takeDue().hasMore {}
        #expect(queries.count == 8)
        for _ in 0..<7 {
            let suspension = fixture.suspension(on: [ben], of: other)
            #expect(try queries.suspend(suspension, decidedAt: 0) == .suspended)
        }
        other.end()
        while queries.takeDue().hasMore {}
        #expect(queries.count == 0)
    }

    @Test("Forgetting queries with many topics is done in portions")
    func forgettingInPortions() async throws {
        let fixture = try await QueryFixture(suspensionsMax: 100, topicsMax: 1 << 20)
        let topics = Set((0..<Limits.topicsRemovedPerTurn / 2).map { Topic.account(Account("t\($0)")!) })
        for _ in 0..<5 {
            let suspension = fixture.suspension(on: topics)
            #expect(try fixture.queries.suspend(suspension, decidedAt: 0) == .suspended)
        }
        fixture.requests.end()
        var left: [Int] = []
        while fixture.queries.takeDue().hasMore { left.append(fixture.queries.count) }
        #expect(left == [3, 1] && fixture.queries.count == 0)
    }

    @Test("Queries with many topics are woken, and answered at their deadline, in portions", arguments: [true, false])
    func manyTopics(isChange: Bool) async throws {
        let fixture = try await QueryFixture(suspensionsMax: 100, topicsMax: 1 << 20)
        let topics = Set((0..<Limits.topicsRemovedPerTurn / 2).map { Topic.account(Account("t\($0)")!) })
        let all = (0..<5).map { _ in
            fixture.suspension(on: topics.union([ana]), deadline: isChange ? 10_000 : 100)
        }
        for suspension in all { #expect(try fixture.queries.suspend(suspension, decidedAt: 0) == .suspended) }
        if isChange { fixture.queries.notify([ana]) } else { fixture.clock.set(200) }
        #expect(becomesTrue { fixture.workers == 1 })
        var counts: [Int] = []
        var hasMore = true
        while hasMore {
            let due = fixture.queries.takeDue()
            counts.append(due.changed.count + due.over.count)
            hasMore = due.hasMore
            #expect(isChange ? due.over.isEmpty : due.changed.isEmpty)
        }
        #expect(counts == [2, 2, 1] && fixture.queries.count == 0)
        for suspension in all { fixture.settle(suspension.task) }
        fixture.requests.end()
    }

    @Test("Deadlines are met while changes keep coming, a limited number a turn")
    func deadlinesBesideChanges() async throws {
        let fixture = try await QueryFixture(suspensionsMax: 4000, topicsMax: 4000)
        let queries = fixture.queries
        let count = Limits.queriesPerTurn + 2
        let changing = (0..<2 * count).map { _ in fixture.suspension(on: [ana], deadline: 10_000) }
        let over = (0..<count).map { _ in fixture.suspension(on: [ben]) }
        // A connection has fewer suspended queries than this.
        let last = Limits.followsPerConnectionMax - over.count
        for suspension in over + changing.prefix(last) {
            #expect(try queries.suspend(suspension, decidedAt: 0) == .suspended)
        }
        queries.notify([ana])
        fixture.clock.set(100)
        let first = queries.takeDue()
        #expect(first.changed.count == Limits.queriesPerTurn && first.over.count == Limits.queriesPerTurn)
        #expect(first.hasMore)
        let second = queries.takeDue()
        #expect(second.over.count == 2)
        for suspension in over + changing { fixture.settle(suspension.task) }
        for suspension in changing.dropFirst(last) { suspension.task.pending.answer { _ in } }
        fixture.requests.end()
    }

    @Test("Random suspensions, changes, deadlines and removals leave as in a plain list")
    func randomTable() async throws {
        var random = SeededGenerator(seed: runSeed)
        let fixture = try await QueryFixture()
        let topics = try (0..<6).map { Topic.account(try #require(Account("t\($0)"))) }
        var table = SuspensionTable()
        var list: [UInt64: SuspendedQueries.Suspension] = [:]
        var marked: Set<UInt64> = []
        var tasks: [CollaborationTask] = []
        var time: UInt64 = 1000
        for _ in 0..<3000 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1, 2:
                let wanted = Set(topics.filter { _ in Int.random(in: 0..<3, using: &random) == 0 })
                let suspension = fixture.suspension(
                    on: wanted, deadline: time + UInt64.random(in: 0..<400, using: &random))
                tasks.append(suspension.task)
                let number = table.number()
                table.insert(suspension, number: number)
                list[number] = suspension
            case 3:
                let changed = topics.filter { _ in Int.random(in: 0..<4, using: &random) == 0 }
                let hit = list.filter { !$0.value.topics.isDisjoint(with: changed) && !marked.contains($0.key) }.keys
                #expect(table.markChanged(changed) == !hit.isEmpty || !marked.isEmpty, "seed \(runSeed)")
                marked.formUnion(hit)
                let limit = Int.random(in: 1...5, using: &random)
                let removed = table.removeChanged(limit: limit)
                #expect(removed.count == min(limit, marked.count), "seed \(runSeed)")
                for suspension in removed {
                    let number = try #require(marked.first { list[$0]?.task === suspension.task })
                    marked.remove(number)
                    list[number] = nil
                }
            case 4:
                time += UInt64.random(in: 0..<90, using: &random)
                let due = list.filter { $0.value.deadline <= time }
                #expect(table.isOver(at: time) == !due.isEmpty, "seed \(runSeed)")
                let limit = Int.random(in: 1...5, using: &random)
                let removed = table.removeOver(at: time, limit: limit)
                #expect(removed.count == min(limit, due.count), "seed \(runSeed)")
                for suspension in removed {
                    #expect(suspension.deadline <= time)
                    let number = try #require(due.keys.first { list[$0]?.task === suspension.task })
                    list[number] = nil
                    marked.remove(number)
                }
            default:
                guard let number = list.keys.randomElement(using: &random) else { continue }
                #expect(table.remove(number) != nil && table.remove(number) == nil)
                list[number] = nil
                marked.remove(number)
            }
            #expect(table.count == list.count)
            #expect(table.topicCount == list.values.reduce(0) { $0 + $1.topics.count })
        }
        while table.count > 0 { #expect(!table.removeAny(limit: 7).isEmpty) }
        for task in tasks { task.pending.answer { _ in } }
        fixture.requests.end()
    }
}
