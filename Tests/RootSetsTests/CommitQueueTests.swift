import Core
import Dispatch
import Foundation
@testable import RootSets
import TestSupport
import Testing

@Suite struct CommitQueueTests {
    /// Keeps the writer of a storage from its work until it is released.
    private final class Hold {
        private let semaphore = DispatchSemaphore(value: 0)

        init(_ sets: RootSets) throws {
            let isHeld = Shared(false)
            // The completion is called on the writer's thread, which then takes no more mutations.
            sets.submit(Mutation(.dropCollaboration(try #require(CollaborationIdentifier("held"))))) {
                [semaphore] _ in
                isHeld.with { $0 = true }
                semaphore.wait()
            }
            #expect(becomesTrue { isHeld.value })
        }

        func release() {
            semaphore.signal()
        }
    }

    @Test("Half of the mutations that may wait for the writer may be one peer's, and for one more the answer is busy")
    func waitingMutations() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let nobody = try #require(CollaborationIdentifier("nobody"))
        let hold = try Hold(sets)
        let done = Shared(0)
        let share = Limits.mutationsQueuedMax / 2
        let refusals = Shared<[ServiceError]>([])
        for _ in 0...share {
            sets.submit(Mutation(.dropCollaboration(nobody))) { result in
                if case .failure(let error) = result, error.code == .busy { refusals.with { $0.append(error) } }
                done.increment()
            }
        }
        #expect(refusals.value.count == 1)
        #expect(done.value == 1)
        hold.release()
        #expect(becomesTrue { done.value == share + 1 })
        #expect(refusals.value.count == 1)
        _ = try storage.create("afterwards")
    }

    /// Submits mutations of peer after peer until each is refused, and returns how many of each are waiting.
    private func fill(_ sets: RootSets, peers: Int, with mutation: () -> Mutation) -> [Int] {
        (0..<peers).map { peer in
            let isRefused = Shared(false)
            var count = -1
            while !isRefused.value {
                count += 1
                sets.submit(mutation(), of: .address(UInt32(peer))) { result in
                    if case .failure(let error) = result, error.code == .busy { isRefused.with { $0 = true } }
                }
            }
            return count
        }
    }

    @Test("Several peers fill the writer's queue up to its bound, and each of them gets half of what is left")
    func wholeQueue() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let nobody = try #require(CollaborationIdentifier("nobody"))
        let hold = try Hold(sets)
        let counts = fill(sets, peers: 20) { Mutation(.dropCollaboration(nobody)) }
        #expect(Array(counts.prefix(4)) == [1, 2, 3, 4].map { Limits.mutationsQueuedMax >> $0 })
        #expect(counts.reduce(0, +) == Limits.mutationsQueuedMax)
        #expect(counts.suffix(3) == [0, 0, 0])
        hold.release()
        #expect(becomesTrue { sets.queueDepth == 0 })
    }

    @Test("The bytes of several peers' mutations fill the queue up to their bound")
    func wholeQueueOfBytes() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let nobody = try #require(CollaborationIdentifier("nobody"))
        let hold = try Hold(sets)
        let roots = [Digest](repeating: .zero, count: Limits.rootsPerRequestMax)
        let counts = fill(sets, peers: 8) { Mutation(.removeRoots(nobody, roots)) }
        let bytes = counts.reduce(0, +) * roots.count * Digest.byteCount
        // What is left is less than twice the bytes of one more.
        #expect(bytes <= Limits.mutationBytesQueuedMax && bytes > Limits.mutationBytesQueuedMax - 3 << 20)
        #expect(counts.prefix(2) == [31, 16] && counts.last == 0)
        hold.release()
        #expect(becomesTrue { sets.queueDepth == 0 })
    }

    @Test("A removal that comes last is answered before other peers' additions, in a commit of its own")
    func overtaking() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        let root = random.digest()
        _ = try sets.apply(Mutation(.addRoots(decks, [root])))
        let hold = try Hold(sets)
        let before = sets.commitCounts.commits
        let (answers, commitsAtRemoval) = (Shared<[String]>([]), Shared<UInt64>(0))
        for _ in 0..<2000 {
            sets.submit(Mutation(.addRoots(decks, [random.digest()])), of: .address(UInt32(1))) { _ in
                answers.with { $0.append("addition") }
            }
        }
        sets.submit(Mutation(.removeRoots(decks, [root])), of: .address(UInt32(2)), isUrgent: true) { [weak sets] _ in
            answers.with { $0.append("removal") }
            commitsAtRemoval.with { $0 = sets?.commitCounts.commits ?? 0 }
        }
        hold.release()
        #expect(becomesTrue { answers.value.count == 2001 })
        #expect(answers.value.first == "removal")
        #expect(commitsAtRemoval.value == before + 1)
        // It did not wait for all of the additions to be committed with it.
        #expect(sets.commitCounts.commits >= before + 2)
    }

    @Test("A removal that comes while a long commit is made joins it and ends it")
    func joining() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        let answers = Shared<[String]>([])
        // They are made before, so that they come faster than they are applied.
        let additions = (0..<40).map { _ in Mutation(.addRoots(decks, (0..<1000).map { _ in random.digest() })) }
        for addition in additions {
            sets.submit(addition, of: .address(UInt32(1))) { _ in
                answers.with { $0.append("addition") }
            }
        }
        sets.submit(Mutation(.removeRoots(decks, [.zero])), of: .address(UInt32(2)), isUrgent: true) { _ in
            answers.with { $0.append("removal") }
        }
        #expect(becomesTrue { answers.value.count == 41 })
        let place = try #require(answers.value.firstIndex(of: "removal"))
        #expect(place < 39)
    }

    @Test("Mutations of several peers are committed in short commits", arguments: [1, 2], [false, true])
    func shortCommits(peers: Int, areUrgent: Bool) throws {
        let storage = try Storage()
        let sets = try storage.sets
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        let hold = try Hold(sets)
        let before = sets.commitCounts.commits
        let answers = Shared(0)
        for number in 0..<20 {
            let roots = (0..<4000).map { _ in random.digest() }
            let peer = Holder.address(UInt32(number == 1 ? peers : 1))
            sets.submit(Mutation(.addRoots(decks, roots)), of: peer, isUrgent: areUrgent) { _ in
                answers.increment()
            }
        }
        hold.release()
        #expect(becomesTrue { answers.value == 20 })
        // One peer alone has all of them in one commit.
        let commits = sets.commitCounts.commits - before
        #expect(peers == 1 ? commits == 1 : commits > 1, "\(commits) commits")
    }

    @Test("A commit of several peers is longer where writing takes longer, within bounds")
    func sharedTime() {
        let times = [0, 900, 1500, 4000, 5100, 60_000].map {
            CommitQueue.sharedTime(afterWriting: .microseconds($0)) / .microseconds(1)
        }
        #expect(times == [2000, 2000, 3000, 8000, 10_000, 10_000])
    }

    @Test("A group that finds no room is committed one by one in peers' turns, each peer's mutations in their order")
    func noRoomTogether() throws {
        let (fails, later) = (Shared(false), Shared<(@Sendable () -> Void)?>(nil))
        var surroundings = StorageSurroundings()
        surroundings.willCommit = {
            let isFailure = fails.with { fails in
                defer { fails = false }
                return fails
            }
            guard isFailure else { return 0 }
            later.value?()
            return ENOSPC
        }
        let storage = try Storage(surroundings)
        let (sets, decks) = (try storage.sets, try storage.create("decks"))
        let hold = try Hold(sets)
        let answers = Shared<[(peer: UInt32, number: Int, sequence: UInt64)]>([])
        var random = SeededGenerator(seed: runSeed)
        let roots = (0..<200).map { _ in random.digest() }
        @Sendable func submit(_ numbers: Range<Int>, of peer: UInt32) {
            for number in numbers {
                sets.submit(Mutation(.addRoots(decks, [roots[number]])), of: .address(peer)) { result in
                    guard let sequence = try? result.get().sequence else { return }
                    answers.with { $0.append((peer, number, sequence)) }
                }
            }
        }
        submit(0..<100, of: 1)
        later.with { $0 = { submit(100..<103, of: 2) } }
        fails.with { $0 = true }
        let before = sets.commitCounts.commits
        hold.release()
        #expect(becomesTrue { answers.value.count == 103 })
        later.with { $0 = nil }
        #expect(answers.value.prefix(7).map(\.number) == [0, 1, 100, 2, 101, 3, 102], "\(answers.value.prefix(7))")
        #expect(answers.value.filter { $0.peer == 1 }.map(\.number) == Array(0..<100))
        #expect(answers.value.map(\.sequence) == (2...104).map { UInt64($0) })
        #expect(sets.commitCounts.commits - before >= UInt64(Limits.commitsAlone))
        #expect(sets.commitCounts.commits - before < 100, "mutations are committed alone for ever")
        #expect(sets.queueDepth == 0)
    }

    @Test("Twice as many mutations are committed alone when the next group finds no room either, and then fewer again")
    func noRoomAgain() throws {
        let (failures, queue) = (Shared(0), Shared<RootSets?>(nil))
        var surroundings = StorageSurroundings()
        surroundings.willCommit = {
            // A group has taken all that wait.
            guard queue.value?.queueDepth == 0 else { return 0 }
            return failures.with { left in
                defer { left -= min(left, 1) }
                return left > 0 ? ENOSPC : 0
            }
        }
        let storage = try Storage(surroundings)
        let (sets, decks) = (try storage.sets, try storage.create("decks"))
        var random = SeededGenerator(seed: runSeed)
        func commits(of count: Int, failing failed: Int) throws -> Int {
            let hold = try Hold(sets)
            let done = Shared(0)
            for _ in 0..<count {
                sets.submit(Mutation(.addRoots(decks, [random.digest()]))) { _ in done.increment() }
            }
            failures.with { $0 = failed }
            queue.with { $0 = sets }
            let before = sets.commitCounts.commits
            hold.release()
            #expect(becomesTrue { done.value == count })
            queue.with { $0 = nil }
            return Int(sets.commitCounts.commits - before)
        }
        let alone = Limits.commitsAlone
        let (twice, once) = (try commits(of: 300, failing: 2), try commits(of: 300, failing: 1))
        #expect((3 * alone...3 * alone + 4).contains(twice), "\(twice)")
        #expect((alone...alone + 3).contains(once), "\(once)")
    }

    @Test("A removal stays behind the additions that its own peer has sent before")
    func order() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        let root = random.digest()
        let hold = try Hold(sets)
        let receipts = Shared<[MutationReceipt]>([])
        for number in 0..<100 {
            let isUrgent = number % 2 == 1
            let change: Change = isUrgent ? .removeRoots(decks, [root]) : .addRoots(decks, [root])
            sets.submit(Mutation(change), of: .address(UInt32(1)), isUrgent: isUrgent) { result in
                if case .success(let receipt) = result { receipts.with { $0.append(receipt) } }
            }
        }
        hold.release()
        #expect(becomesTrue { receipts.value.count == 100 })
        #expect(receipts.value.allSatisfy { $0.changed == 1 })
        #expect(receipts.value.map(\.sequence) == receipts.value.map(\.sequence).sorted())
    }
}
