import Core
import Foundation
import TestSupport
import Testing

@testable import Verification

@Suite("Requests for challenges")
struct ChallengeRequestTests {
    @Test("Requests of every size are completed once, and all of their challenges are genuine and different")
    func everySize() throws {
        let fixture = try Fixture()
        let book = fixture.resources.challenges
        let pool = try WorkerPool(fixture.resources, workerCount: 3, waitingItemsMax: 1 << 20)
        let answers = Shared<[Int: [[UInt8]]]>([:])
        let counts = [1, 2, 31, 32, 33, 1023, 1024, 1025, 2048, Limits.challengesPerRequestMax]
        let source = WorkSource()
        for (number, count) in counts.enumerated() {
            let request = ChallengeRequest(count: count) { request in
                answers.with { $0[number, default: []].append(Array(request.bytes)) }
            }
            #expect(pool.submit(request, from: number % 2 == 0 ? source : WorkSource()))
        }
        pool.close()
        #expect(pool.depth == 0)
        var all: Set<[UInt8]> = []
        for (number, count) in counts.enumerated() {
            let bytes = try #require(answers.value[number])
            try #require(bytes.count == 1 && bytes[0].count == count * ChallengeBook.challengeBytes)
            for start in stride(from: 0, to: bytes[0].count, by: ChallengeBook.challengeBytes) {
                let challenge = Array(bytes[0][start..<start + ChallengeBook.challengeBytes])
                _ = try book.token(of: challenge)
                all.insert(challenge)
            }
        }
        #expect(all.count == counts.reduce(0, +))
    }

    @Test("Thirty-two challenges count as one waiting proof, and more than a peer's share of the queue is refused")
    func weight() throws {
        let fixture = try Fixture()
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 100)
        let worker = try pool.attachWorker {}
        let done = Shared(0)
        func request(_ count: Int) -> ChallengeRequest { ChallengeRequest(count: count) { _ in done.increment() } }
        let source = WorkSource()
        #expect(pool.submit(request(1), from: source))
        #expect(pool.depth == 1)
        #expect(pool.submit(request(32), from: source))
        #expect(pool.submit(request(33), from: source))
        #expect(pool.depth == 4)
        #expect(!pool.submit(request(46 * 32 + 1), from: source))
        #expect(pool.submit(request(46 * 32), from: source))
        #expect(!pool.submit(request(1), from: WorkSource()))
        while worker.work() {}
        #expect(pool.depth == 0)
        #expect(done.value == 4)
    }

    @Test("Several peers' challenges fill the queue up to its bound, and each of them gets half of what is left")
    func wholeQueue() throws {
        let fixture = try Fixture()
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 1000)
        let worker = try pool.attachWorker {}
        let done = Shared(0)
        let counts = (0..<12).map { peer in
            let source = WorkSource(.address(UInt32(peer)))
            var count = 0
            while pool.submit(ChallengeRequest(count: 32) { _ in done.increment() }, from: source) { count += 1 }
            return count
        }
        #expect(counts.prefix(4) == [500, 250, 125, 63])
        #expect(counts.reduce(0, +) == 1000 && pool.depth == 1000)
        #expect(counts.suffix(2) == [0, 0])
        while worker.work() {}
        #expect(done.value == 1000 && pool.depth == 0)
    }

    @Test("A request for many challenges delays other work by one turn only")
    func turns() throws {
        let fixture = try Fixture()
        let book = fixture.resources.challenges
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 1 << 20)
        let worker = try pool.attachWorker {}
        let source = WorkSource()
        for _ in 0..<10 {
            let request = ChallengeRequest(count: Limits.challengesPerRequestMax) { _ in }
            #expect(pool.submit(request, from: source))
        }
        let issuedBefore = Shared<UInt64?>(nil)
        #expect(pool.submit(from: WorkSource()) { issuedBefore.with { $0 = book.statistics.issued } })
        while worker.work() {}
        #expect(issuedBefore.value == UInt64(Limits.challengesPerTurn))
        #expect(book.statistics.issued == UInt64(10 * Limits.challengesPerRequestMax))
    }

    @Test("A request whose challenges are made twice ends the process")
    func twice() async {
        await #expect(processExitsWith: .failure) {
            let fixture = try Fixture()
            let maker = fixture.resources.challenges.makeTagMaker()
            let request = ChallengeRequest(count: 2) { _ in }
            request.make(0..<2, of: fixture.resources.challenges, with: maker)
            request.make(0..<1, of: fixture.resources.challenges, with: maker)
        }
    }
}
