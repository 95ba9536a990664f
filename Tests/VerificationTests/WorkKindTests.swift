import Core
import TestSupport
import Testing
import Verification

@Suite("Kinds of work in the worker pool")
struct WorkKindTests {
    /// What a worker did, in order.
    private let done = Shared<[String]>([])

    private func submit(_ name: String, _ kind: WorkKind, from source: WorkSource, to pool: WorkerPool) {
        let isTaken = pool.submit(from: source, kind) { [done] in done.with { $0.append(name) } }
        #expect(isTaken)
    }

    @Test("A proof and a task wait for one woken query each, whatever the number of peers with such queries")
    func prompt() throws {
        let fixture = try Fixture()
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 4000)
        let worker = try pool.attachWorker {}
        for peer in 1...127 {
            let source = WorkSource(.address(UInt32(peer)))
            for _ in 0..<4 { submit("query", .following, from: source, to: pool) }
        }
        #expect(worker.work())
        let packed = PackedProofs([(Fixture.challenged, try fixture.proof())])
        let proof = VerificationRequest(count: 1, isSigned: false, wantsRoots: false) { _ in
            packed.proofs[0]
        } completion: { [done] _, _ in
            done.with { $0.append("proof") }
        }
        #expect(pool.submit(proof, from: WorkSource(.address(UInt32(200)))))
        submit("task", .prompt, from: WorkSource(.address(UInt32(201))), to: pool)
        for _ in 0..<4 { #expect(worker.work()) }
        #expect(done.value == ["query", "proof", "query", "task", "query"])
        while worker.work() {}
        #expect(done.value.count == 127 * 4 + 2)
    }

    @Test("A query of one peer is done after a turn of each peer with tasks")
    func following() throws {
        let fixture = try Fixture()
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 4000)
        let worker = try pool.attachWorker {}
        for peer in 1...20 {
            let source = WorkSource(.address(UInt32(peer)))
            for _ in 0..<5 { submit("task", .prompt, from: source, to: pool) }
        }
        for _ in 0..<3 { submit("query", .following, from: WorkSource(.address(UInt32(100))), to: pool) }
        while worker.work() {}
        let places = done.value.indices.filter { done.value[$0] == "query" }
        #expect(places.count == 3 && places[0] <= 20)
        for (one, next) in zip(places, places.dropFirst()) { #expect((19...22).contains(next - one)) }
    }

    @Test("A proof does not wait for the queries of its own connection")
    func ownQueries() throws {
        let fixture = try Fixture()
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 4000)
        let worker = try pool.attachWorker {}
        let source = WorkSource(.address(UInt32(1)))
        for _ in 0..<100 { submit("query", .following, from: source, to: pool) }
        submit("task", .prompt, from: source, to: pool)
        for _ in 0..<2 { #expect(worker.work()) }
        #expect(done.value.contains("task"))
        while worker.work() {}
        #expect(done.value.count == 101 && pool.depth == 0)
    }

    @Test("A query waits for one portion of single proofs of one peer, however many connections bring them")
    func manyConnections() throws {
        let fixture = try Fixture()
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 4000)
        let worker = try pool.attachWorker {}
        let packed = PackedProofs([(Fixture.challenged, try fixture.proof())])
        for _ in 0..<1000 {
            let proof = VerificationRequest(count: 1, isSigned: false, wantsRoots: false) { _ in
                packed.proofs[0]
            } completion: { [done] _, _ in
                done.with { $0.append("proof") }
            }
            #expect(pool.submit(proof, from: WorkSource(.address(UInt32(1)))))
        }
        for _ in 0..<3 { submit("query", .following, from: WorkSource(.address(UInt32(2))), to: pool) }
        for _ in 0..<4 { #expect(worker.work()) }
        // No query follows another one while proofs wait.
        #expect(done.value.count { $0 == "query" } == 2)
        while worker.work() {}
        #expect(done.value.count == 1003)
    }

    @Test("A source's work of one kind is done in the order in which it came")
    func order() throws {
        let fixture = try Fixture()
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 4000)
        let worker = try pool.attachWorker {}
        var random = SeededGenerator(seed: runSeed)
        let sources = (0..<6).map { WorkSource(.address(UInt32($0 / 2))) }
        var expected: [String: [String]] = [:]
        for number in 0..<1000 {
            let place = Int.random(in: 0..<sources.count, using: &random)
            let kind: WorkKind = Bool.random(using: &random) ? .prompt : .following
            let line = "\(place) \(kind)"
            expected[line, default: []].append("\(line) \(number)")
            submit("\(line) \(number)", kind, from: sources[place], to: pool)
            if number % 3 == 0 { #expect(worker.work()) }
        }
        while worker.work() {}
        #expect(pool.depth == 0)
        for (line, expected) in expected {
            #expect(done.value.filter { $0.hasPrefix(line) } == expected, "seed \(runSeed)")
        }
    }
}
