import Core
import Foundation
import Identity
import Signatures
import TestSupport
import Testing
import Verification

/// Keeps workers from taking proofs until it is opened.
private final class Barrier: Sendable {
    private let start = DispatchSemaphore(value: 0)
    private let end = DispatchSemaphore(value: 0)

    /// Returns when `workers` workers do nothing but wait.
    func hold(_ workers: Int, of pool: WorkerPool) -> Bool {
        for _ in 0..<workers {
            let isTaken = pool.submit(from: WorkSource()) { [self] in
                start.signal()
                end.wait()
            }
            guard isTaken else { return false }
        }
        for _ in 0..<workers { start.wait() }
        return true
    }

    func open(_ workers: Int) {
        for _ in 0..<workers { end.signal() }
    }
}

@Suite("The worker pool")
struct WorkerPoolTests {
    /// Four inclusion-only proofs with different verdicts.
    private func samples(_ fixture: Fixture) throws -> (packed: PackedProofs, verdicts: [Verdict], roots: [Digest]) {
        let genuine = try fixture.proof()
        let packed = PackedProofs([
            (Fixture.challenged, genuine),
            (Fixture.challenged, try Forgery.truncatedKey.spoil(genuine, stranger: fixture.stranger)),
            (Fixture.challenged, try Forgery.tooManySiblings.spoil(genuine, stranger: fixture.stranger)),
            ("nowhere", genuine),
        ])
        return (
            packed, [.included, .badKey, .malformed, .unknownCollaboration], [try fixture.root(), .zero, .zero, .zero]
        )
    }

    @Test("Requests of 1 to 1,000 proofs, signed or not, are each completed once with each proof's verdict")
    func everySize() throws {
        let fixture = try Fixture()
        let (packed, verdicts, roots) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 3, waitingItemsMax: 1 << 20)
        let completed = Shared<[Int: Int]>([:])
        let wrong = Shared<[String]>([])
        let tasks = Shared(0)
        let seed = runSeed
        let items = Shared(0)
        onThreads(4) { thread in
            var random = SeededGenerator(seed: seed &+ UInt64(thread))
            let sources = [WorkSource(), WorkSource()]
            for number in 0..<50 {
                let count = number == 0 ? 1 : number == 1 ? 1000 : Int.random(in: 1...1000, using: &random)
                // A signed one has no proof that passes: it would be a replay the second time.
                let isSigned = Bool.random(using: &random)
                let wantsRoots = Bool.random(using: &random)
                let kinds = (0..<count).map { _ in Int.random(in: isSigned ? 1..<4 : 0..<4, using: &random) }
                let request = VerificationRequest(count: count, isSigned: isSigned, wantsRoots: wantsRoots) {
                    packed.proofs[kinds[$0]]
                } completion: { request, error in
                    completed.with { $0[thread * 100 + number, default: 0] += 1 }
                    let isRight =
                        error == nil && request.verdicts.elementsEqual(kinds.map { verdicts[$0] })
                        && (request.roots?.elementsEqual(kinds.map { roots[$0] }) ?? !wantsRoots)
                    if !isRight { wrong.with { $0.append("thread \(thread), request \(number)") } }
                }
                items.with { $0 += count }
                if !pool.submit(request, from: sources[number % 2]) { wrong.with { $0.append("not taken") } }
                if number % 5 == 0 { _ = pool.submit(from: sources[0]) { tasks.increment() } }
            }
        }
        pool.close()
        #expect(wrong.value == [], "seed \(runSeed)")
        #expect(completed.value.count == 200)
        #expect(completed.value.values.allSatisfy { $0 == 1 })
        #expect(tasks.value == 40)
        #expect(pool.depth == 0)
        #expect(pool.verdictCounts.reduce(0) { $0 + $1.count } == UInt64(items.value))
    }

    /// Notes what happens around the completions of a pass.
    private final class Gathering: AnswerGathering {
        let events = Shared<[String]>([])

        func beginGathering() { events.with { $0.append("begin") } }
        func endGathering() { events.with { $0.append("end") } }
    }

    @Test("A pass that completes several requests says so before the first and after each, and a lone one does not")
    func gathering() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 1000)
        let gathering = Gathering()
        let source = WorkSource()
        source.answers = gathering
        func submit() {
            let request = VerificationRequest(count: 1, isSigned: false, wantsRoots: false) { _ in
                packed.proofs[0]
            } completion: { _, _ in
                gathering.events.with { $0.append("answer") }
            }
            #expect(pool.submit(request, from: source))
        }
        submit()
        #expect(becomesTrue { gathering.events.value == ["answer"] })
        gathering.events.with { $0 = [] }
        let barrier = Barrier()
        try #require(barrier.hold(1, of: pool))
        for _ in 0..<3 { submit() }
        barrier.open(1)
        pool.close()
        let events = gathering.events.value
        #expect(events.filter { $0 == "answer" }.count == 3)
        #expect(
            events == Array(repeating: "begin", count: 3)
                + Array(repeating: ["answer", "end"], count: 3).flatMap { $0 })
    }

    @Test("A source's answers leave before the same pass completes what is left of another's")
    func gatheringOfSeveral() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 1000)
        let gatherings = [Gathering(), Gathering()]
        let endsBefore = Shared<[Int]>([])
        let barrier = Barrier()
        try #require(barrier.hold(1, of: pool))
        let sources = gatherings.map { gathering in
            let source = WorkSource()
            source.answers = gathering
            return source
        }
        for source in sources {
            let request = VerificationRequest(count: 1, isSigned: false, wantsRoots: false) { _ in
                packed.proofs[0]
            } completion: { _, _ in
                endsBefore.with { $0.append(gatherings.count { $0.events.value == ["begin", "end"] }) }
            }
            #expect(pool.submit(request, from: source))
        }
        barrier.open(1)
        pool.close()
        #expect(endsBefore.value == [0, 1])
        #expect(gatherings.allSatisfy { $0.events.value == ["begin", "end"] })
    }

    @Test("Every forgery gets its verdict through the pool, and of copies exactly one is granted")
    func forgeries() throws {
        let fixture = try Fixture()
        let genuine = try fixture.proof()
        var entries = [(collaboration: Fixture.challenged, proof: genuine)]
        // Each with a challenge of its own, so that the genuine proof's grant does not show in it.
        for forgery in Forgery.allCases {
            entries.append((Fixture.challenged, try forgery.spoil(fixture.proof(), stranger: fixture.stranger)))
        }
        let packed = PackedProofs(entries)
        let pool = try WorkerPool(fixture.resources, workerCount: 4, waitingItemsMax: 1 << 20)
        let outcomes = Shared<[[Verdict]]>([])
        for _ in 0..<30 {
            let request = VerificationRequest(count: entries.count, isSigned: true, wantsRoots: false) {
                packed.proofs[$0]
            } completion: { request, _ in
                outcomes.with { $0.append(Array(request.verdicts)) }
            }
            #expect(pool.submit(request, from: WorkSource()))
        }
        pool.close()
        #expect(outcomes.value.count == 30)
        #expect(outcomes.value.count { $0.first == .granted } == 1)
        #expect(outcomes.value.count { $0.first == .challengeReplayed } == 29)
        for verdicts in outcomes.value { #expect(Array(verdicts.dropFirst()) == Forgery.allCases.map(\.verdict)) }
    }

    @Test(
        "A source with 100,000 proofs delays a single proof of another by at most one pass", arguments: [1, 4])
    func fairness(workers: Int) throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 400_000)
        let crew = try (0..<workers).map { _ in try pool.attachWorker {} }
        let begun = Shared(0)
        let large = VerificationRequest(count: 100_000, isSigned: false, wantsRoots: false) { _ in
            begun.increment()
            return packed.proofs[1]
        } completion: { _, _ in
        }
        let begunBefore = Shared<Int?>(nil)
        let single = VerificationRequest(count: 1, isSigned: false, wantsRoots: false) { _ in
            // What counts is how many proofs of the other source were begun before this one.
            begunBefore.with { $0 = begun.value }
            return packed.proofs[1]
        } completion: { _, _ in
        }
        #expect(pool.submit(large, from: WorkSource()))
        #expect(pool.submit(single, from: WorkSource()))
        #expect(pool.depth == 100_001)
        // One after the other: while the system stops a thread that has the single proof, others would go on.
        while crew.reduce(false, { $1.work() || $0 }) {}
        #expect(begun.value == 100_000)
        let before = try #require(begunBefore.value)
        #expect(before <= Limits.proofsPerPassMax)
    }

    @Test("A pool refuses what is above a peer's share of its queue, and accepts it once the queue is empty")
    func busy() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 200)
        let done = Shared(0)
        func request(_ count: Int) -> VerificationRequest {
            VerificationRequest(count: count, isSigned: false, wantsRoots: false) { _ in
                packed.proofs[1]
            } completion: { _, _ in
                done.increment()
            }
        }
        let source = WorkSource()
        let barrier = Barrier()
        try #require(barrier.hold(1, of: pool))
        #expect(pool.submit(request(60), from: source))
        #expect(!pool.submit(request(41), from: source))
        #expect(!pool.submit(request(41), from: WorkSource()))
        #expect(pool.submit(request(40), from: source))
        #expect(!pool.submit(request(1), from: source))
        #expect(!pool.submit(from: source) { done.increment() })
        #expect(pool.depth == 100)
        barrier.open(1)
        #expect(becomesTrue { done.value == 2 })
        #expect(pool.depth == 0)
        // A request above the whole bound is accepted when the queue is empty.
        #expect(pool.submit(request(500), from: source))
        #expect(becomesTrue { done.value == 3 })
        #expect(pool.submit(from: source) { done.increment() })
        pool.close()
        #expect(done.value == 4)
    }

    @Test("Many sources of one peer delay another peer's proof no more than one source, and leave it places")
    func peers() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 40_000)
        let barrier = Barrier()
        try #require(barrier.hold(1, of: pool))
        let begun = Shared(0)
        func request(_ count: Int, _ body: @escaping @Sendable () -> Void) -> VerificationRequest {
            VerificationRequest(count: count, isSigned: false, wantsRoots: false) { _ in
                body()
                return packed.proofs[1]
            } completion: { _, _ in
            }
        }
        let sources = (0..<1000).map { _ in WorkSource(.address(UInt32(1))) }
        var taken = 0
        for round in 0..<40 {
            for source in sources where pool.submit(request(1, { begun.increment() }), from: source) { taken += 1 }
            if round == 39 { #expect(taken == 20_000) }
        }
        let begunBefore = Shared<Int?>(nil)
        let honest = WorkSource(.address(UInt32(2)))
        #expect(pool.submit(request(1) { begunBefore.with { $0 = begun.value } }, from: honest))
        #expect(pool.submit(request(5000) {}, from: honest))
        barrier.open(1)
        pool.close()
        #expect(begun.value == taken)
        // One turn of the peer with many sources came first.
        #expect(try #require(begunBefore.value) <= 1)
        #expect(pool.depth == 0)
    }

    @Test("A worker takes less at once while peers take turns, and as much as before when one is alone again")
    func sharedPortions() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 40_000)
        let worker = try pool.attachWorker {}
        let read = Shared(0)
        let sources = (1...2).map { WorkSource(.address(UInt32($0))) }
        func submit(_ count: Int, from source: WorkSource) {
            let request = VerificationRequest(count: count, isSigned: false, wantsRoots: false) { _ in
                read.increment()
                return packed.proofs[1]
            } completion: { _, _ in
            }
            #expect(pool.submit(request, from: source))
        }
        /// How many proofs the worker takes at once.
        func portion() -> Int {
            let before = read.value
            #expect(worker.work())
            return read.value - before
        }
        for _ in 0..<20 { submit(Limits.proofsPerPortionMax, from: sources[0]) }
        #expect(portion() == Limits.proofsPerPortionMax)
        submit(1, from: sources[1])
        // The turn of the other peer is within the first of these portions, and they count from then on.
        let count = 1 + Limits.sharedItems / Limits.proofsPerSharedPortionMax
        let shared = (0..<count).map { _ in portion() }
        #expect(shared == [Int](repeating: Limits.proofsPerSharedPortionMax, count: count))
        #expect(portion() == Limits.proofsPerPortionMax)
        while worker.work() {}
        #expect(pool.depth == 0)
    }

    @Test(
        "A worker takes few signed proofs at once while peers take turns, and of each peer half of them", .serialized,
        arguments: [false, true])
    func sharedSignedPortions(usesKernels: Bool) throws {
        var configuration = SignatureEngine.Configuration()
        configuration.usesKernels = usesKernels
        let fixture = try Fixture(signatures: SignatureEngine(configuration))
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 0, waitingItemsMax: 40_000)
        let worker = try pool.attachWorker {}
        let read = Shared([0, 0])
        let sources = (1...2).map { WorkSource(.address(UInt32($0))) }
        for (index, source) in sources.enumerated() {
            let request = VerificationRequest(count: 2000, isSigned: true, wantsRoots: false) { _ in
                read.with { $0[index] += 1 }
                return packed.proofs[1]
            } completion: { _, _ in
            }
            #expect(pool.submit(request, from: source))
        }
        /// How many proofs of each source the worker takes at once.
        func portion() -> [Int] {
            let before = read.value
            #expect(worker.work())
            return zip(read.value, before).map(-)
        }
        let most = fixture.resources.signatures.sharedPortion
        let turn = min(Limits.proofsPerTurn, max(1, most / 2))
        #expect((1...Limits.proofsPerSharedPortionMax).contains(most))
        if !usesKernels { #expect(most == Limits.libcryptoProofsPerSharedPortion) }
        for _ in 0..<8 { #expect(portion().reduce(0, +) == most) }
        let taken = read.value
        #expect(abs(taken[0] - taken[1]) <= turn, "\(taken)")
        while worker.work() {}
        #expect(pool.depth == 0)
    }

    @Test("A source's next work counts for the peer that it has become, and what waits for the one before")
    func moved() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 90)
        let barrier = Barrier()
        try #require(barrier.hold(1, of: pool))
        let done = Shared(0)
        func request(_ count: Int) -> VerificationRequest {
            VerificationRequest(count: count, isSigned: false, wantsRoots: false) { _ in
                packed.proofs[1]
            } completion: { request, _ in
                done.with { $0 += request.count }
            }
        }
        let (first, second) = (WorkSource(.address(UInt32(1))), WorkSource(.address(UInt32(2))))
        #expect(pool.submit(request(30), from: first))
        pool.move(first, to: .principal(7))
        pool.move(second, to: .principal(7))
        // The peer of the work that waits has room for 15 more, and the principal has room for 23.
        #expect(!pool.submit(request(16), from: first))
        #expect(pool.submit(request(15), from: first))
        #expect(!pool.submit(request(24), from: second))
        #expect(pool.submit(request(22), from: second))
        barrier.open(1)
        #expect(becomesTrue { done.value == 67 })
        let again = Barrier()
        try #require(again.hold(1, of: pool))
        #expect(pool.submit(request(45), from: first))
        #expect(!pool.submit(request(1), from: second))
        again.open(1)
        pool.close()
        #expect(done.value == 112)
    }

    @Test("Peers that come once each leave few traces in the pool, and their shares still count")
    func manyPeers() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 1, waitingItemsMax: 100)
        let done = Shared(0)
        func submit(from source: WorkSource) -> Bool {
            pool.submit(
                VerificationRequest(count: 1, isSigned: false, wantsRoots: false) { _ in
                    packed.proofs[1]
                } completion: { _, _ in
                    done.increment()
                }, from: source)
        }
        let returning = WorkSource(.address(UInt32(7)))
        for number in 0..<UInt32(3 * Limits.idleTurnsMax) {
            #expect(submit(from: WorkSource(.address(number))))
            #expect(becomesTrue { done.value == 2 * Int(number) + 1 })
            #expect(submit(from: returning))
            #expect(becomesTrue { done.value == 2 * Int(number) + 2 })
        }
        let barrier = Barrier()
        try #require(barrier.hold(1, of: pool))
        for _ in 0..<50 { #expect(submit(from: returning)) }
        #expect(!submit(from: returning) && !submit(from: WorkSource(.address(UInt32(7)))))
        barrier.open(1)
        pool.close()
    }

    @Test("Closing finishes the requests in the queue and refuses later ones")
    func closing() throws {
        let fixture = try Fixture()
        let (packed, _, _) = try samples(fixture)
        let pool = try WorkerPool(fixture.resources, workerCount: 2, waitingItemsMax: 1 << 20)
        let done = Shared(0)
        func request() -> VerificationRequest {
            VerificationRequest(count: 300, isSigned: false, wantsRoots: false) { _ in
                packed.proofs[1]
            } completion: { _, _ in
                done.increment()
            }
        }
        let barrier = Barrier()
        try #require(barrier.hold(2, of: pool))
        for _ in 0..<50 { #expect(pool.submit(request(), from: WorkSource())) }
        barrier.open(2)
        pool.close()
        #expect(done.value == 50)
        #expect(!pool.submit(request(), from: WorkSource()))
        #expect(!pool.submit(from: WorkSource()) { done.increment() })
        pool.close()
        #expect(done.value == 50)
    }
}
