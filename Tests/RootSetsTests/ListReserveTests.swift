import Core
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// `StorageProbe full-disks` removes from small disks, whose free pages may be scattered, too.
@Suite("The list reserve")
struct ListReserveTests {
    private let pages = ScatteredStorage.reservePages

    @Test("Edits that free more pages than scattered ones can list find room one after the other, and are whole")
    func scattered() throws {
        let scattered = try ScatteredStorage()
        let storage = scattered.storage
        for document in ScatteredStorage.documents {
            #expect(try scattered.records(document) == ScatteredStorage.records)
            let first = try storage.sets.statistics().firstSequence
            try storage.sets.apply(Mutation(ScatteredStorage.removal(document)))
            #expect(try storage.sets.statistics().firstSequence == first)
            // Nobody has read meanwhile.
            let reserve = try storage.listReserve()
            #expect(reserve[..<2].allSatisfy { $0 > pages - 8 } && reserve[2...] == [0, 0], "\(document): \(reserve)")
            #expect(try scattered.records(document) == 0)
            #expect(try scattered.records(3) == 2 * ScatteredStorage.records)
        }
        #expect(try storage.sets.allRoots(of: try name("decks")) == [])
        storage.close()
        #expect(try StorageInspection.findings(in: storage.directory).isEmpty)
    }

    @Test("Long records that replace others get neighbouring pages of the reserve, but not those that removals need")
    func replacements() throws {
        for parts in [ListReserve.lasting, []] {
            let scattered = try ScatteredStorage(parts, longRecords: 8)
            let first = try scattered.storage.sets.statistics().firstSequence
            #expect(try scattered.storage.sets.refusal(of: ScatteredStorage.replacement(1)) == nil)
            // Without a reserve the log gives way.
            #expect(try (scattered.storage.sets.statistics().firstSequence == first) == !parts.isEmpty)
        }
        let scattered = try ScatteredStorage(longRecords: 8)
        for round in 0..<5 {
            for record in 0..<8 {
                let refusal = try scattered.storage.sets.refusal(of: ScatteredStorage.replacement(record))
                #expect(refusal == nil, "round \(round), record \(record)")
            }
        }
        let reserve = try scattered.storage.listReserve()
        let needed = StorageRoom.freeListPages(of: 12_000)
        #expect(reserve[0] >= needed && reserve[1] >= needed && reserve[2...] == [0, 0], "\(reserve)")
        for document in ScatteredStorage.documents {
            #expect(try scattered.storage.sets.refusal(of: ScatteredStorage.removal(document)) == nil)
            #expect(try scattered.records(document) == 0)
        }
    }

    @Test("A storage that shares a log finds neighbouring pages for the record of a change in the reserve")
    func sharedRecord() throws {
        var random = SeededGenerator(seed: runSeed)
        let absent = (0..<1000).map { _ in random.digest() }
        for (parts, expected) in [(ListReserve.lasting, nil), ([], ServiceError.Code.storageFailed)] {
            let scattered = try ScatteredStorage(parts, sharing: MemoryLog())
            #expect(try scattered.storage.sets.refusal(of: .removeRoots(try name("decks"), absent)) == expected)
            guard expected == nil else { continue }
            #expect(try scattered.storage.sets.refusal(of: ScatteredStorage.removal(1)) == nil)
            #expect(try scattered.records(1) == 0)
        }
    }

    @Test("What was given up is taken again although there is no room for additions, and nothing else is then")
    func fullReserve() throws {
        let scattered = try ScatteredStorage()
        try scattered.change { commit in
            try commit { transaction, environment in try ListReserve(transaction, environment).giveUp(.first) }
            for _ in 0..<2 { try commit { _, _ in } }
            try commit { _, environment in
                for (reserve, isGivenUp, taken) in [(1, false, pages), (30, false, 0), (30, true, pages)] {
                    var room = try CommitRoom(environment, reserveBytes: reserve << 20, logBytes: 0)
                    let found = try #require(try room.listReserve(insteadOf: 0, isGivenUp: isGivenUp))
                    #expect(found <= taken && found > taken - 8, "\(reserve) \(isGivenUp): \(found)")
                    #expect(try room.listReserve(insteadOf: pages, isGivenUp: isGivenUp) == nil)
                }
            }
        }
    }

    @Test("Without a reserve such an edit is refused, and has changed nothing")
    func withoutReserve() throws {
        let scattered = try ScatteredStorage([])
        for document in ScatteredStorage.documents {
            #expect(try scattered.storage.sets.refusal(of: ScatteredStorage.removal(document)) == .storageFull)
            #expect(try scattered.records(document) == ScatteredStorage.records)
        }
        #expect(try scattered.storage.listReserve() == [0, 0, 0, 0])
        scattered.storage.close()
        #expect(try StorageInspection.findings(in: scattered.storage.directory).isEmpty)
    }

    @Test("One value is enough for a removal", arguments: ListReserve.lasting)
    func oneValue(part: ListReserve.Part) throws {
        let scattered = try ScatteredStorage([part])
        #expect(try scattered.storage.sets.refusal(of: ScatteredStorage.removal(1)) == nil)
        #expect(try scattered.records(1) == 0)
    }

    @Test("What a process has left free of the reserve is taken again, and an addition finds its room besides")
    func missing() throws {
        let scattered = try ScatteredStorage()
        for part in ListReserve.lasting {
            try scattered.change { commit in
                try commit { transaction, environment in try ListReserve(transaction, environment).giveUp(part) }
                for _ in 0..<2 { try commit { _, _ in } }
            }
            #expect(try scattered.storage.sets.refusal(of: .addRoots(try name("decks"), [.zero])) == nil)
            #expect(try scattered.storage.listReserve() == [pages, pages, 0, 0])
        }
    }

    @Test("While somebody reads an older snapshot, such a removal is refused and leaves the reserve as it is")
    func reader() throws {
        let scattered = try ScatteredStorage()
        let code = try scattered.storage.sets.read { _ throws(ServiceError) in
            (try? scattered.storage.sets)?.refusal(of: ScatteredStorage.removal(1))
        }
        #expect(code == .storageFull)
        #expect(try scattered.records(1) == ScatteredStorage.records)
        #expect(try scattered.storage.listReserve() == [pages, pages, 0, 0])
        #expect(try scattered.storage.sets.refusal(of: ScatteredStorage.removal(1)) == nil)
    }

    @Test(
        "Readings of older snapshots are asked to end, later ones are not, and a number that is not there asks nobody")
    func awaitedReaders() throws {
        let scratch = ScratchDirectory()
        let environment = try StorageEnvironment(
            directory: scratch.path + "/data", bytesMax: 1 << 24, reserveBytes: 1 << 20)
        func commit(_ body: (WriteTransaction) throws -> Void) throws -> Int {
            let transaction = try WriteTransaction(in: environment)
            let number = transaction.number
            try body(transaction)
            try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
            try transaction.commit()
            return number
        }
        let isAwaited = try environment.isAwaited(1)
        #expect(!isAwaited)
        let number = try commit { try ListReserve($0, environment).awaitReaders() }
        for (snapshot, expected) in [(number - 1, true), (number, false), (number + 1, false)] {
            #expect(try environment.isAwaited(snapshot) == expected, "\(snapshot) of \(number)")
        }
        let damaged: [[UInt8]] = [[], [1], .init(repeating: 1, count: 9), .init(repeating: 255, count: 8)]
        for bytes in damaged + [[UInt8(number + 9)] + .init(repeating: 0, count: 7)] {
            _ = try commit { try $0.putBytes(environment.meta, ListReserve.awaitedKey, bytes) }
            #expect(try environment.isAwaited(number - 1) == false, "\(bytes)")
        }
    }

    @Test("A value grows with the storage, and a small storage has none")
    func sizes() {
        #expect(ListReserve.needed(all: 500) == 0 && ListReserve.needed(all: 501) > 0)
        for all in [501, 1000, 5000, 60_000, 100_000] {
            #expect(ListReserve.needed(all: all) > StorageRoom.freeListPages(of: all))
            // What it gets is enough until the storage is larger by a half, if it may become so.
            #expect(ListReserve.wanted(used: all, capacity: .max) >= ListReserve.needed(all: all * 3 / 2))
            #expect(ListReserve.wanted(used: all, capacity: all) >= ListReserve.needed(all: all))
        }
        #expect(ListReserve.wanted(used: 1 << 30, capacity: .max) == ListReserve.pagesMax)
    }
}

/// Commits fail for lack of space as a script says, as on a full disk.
@Suite("The last attempt of a removal")
struct LastAttemptTests {
    /// Whether the next commits of mutations fail. Later ones don't.
    private let script = Shared<[Bool]>([])
    private let storage: Storage
    private let decks: CollaborationIdentifier
    private let roots: [Digest]

    init() throws {
        var random = SeededGenerator(seed: runSeed)
        roots = (0..<60_000).map { _ in random.digest() }
        var surroundings = StorageSurroundings()
        surroundings.willCommit = { [script] in
            script.with { !$0.isEmpty && $0.removeFirst() ? ENOSPC : 0 }
        }
        storage = try Storage(surroundings)
        decks = try storage.create("decks")
        for part in stride(from: 0, to: roots.count, by: 30_000) {
            try storage.sets.apply(Mutation(.addRoots(decks, Array(roots[part..<part + 30_000]))))
        }
        var edit = Edit()
        edit.records = [RecordEdit([1], value: [1]), RecordEdit([2], value: [2])]
        try storage.sets.apply(Mutation(.edit(edit)))
    }

    /// In the group, alone, with the pages of the last commit, with a shorter log, and without a record.
    private static let attempts = [Bool](repeating: true, count: 5)

    private func expectWhole(_ remaining: [Digest]) throws {
        #expect(script.value == [])
        // What a reader has kept meanwhile is taken again after some commits.
        for _ in 0..<ListReserve.commitsBetween {
            #expect(try storage.sets.apply(Mutation(.addRoots(decks, [.zero]))).changed == 1)
            #expect(try storage.sets.apply(Mutation(.removeRoots(decks, [.zero]))).changed == 1)
        }
        #expect(try storage.sets.allRoots(of: decks) == remaining.sorted())
        #expect(try storage.sets.statistics().roots == UInt64(remaining.count))
        try expectReserve()
    }

    /// Expects both values, and nothing else.
    private func expectReserve() throws {
        let reserve = try storage.listReserve()
        #expect(reserve[0] > 0 && reserve[1] > 0 && reserve[2...] == [0, 0], "\(reserve)")
        storage.close()
        #expect(try StorageInspection.findings(in: storage.directory).isEmpty)
    }

    @Test("A removal of root hashes has one sequence, and the log is given up for it")
    func removal() throws {
        script.with { $0 = Self.attempts }
        let receipt = try storage.sets.apply(Mutation(.removeRoots(decks, Array(roots.prefix(1000)))))
        #expect(receipt == MutationReceipt(sequence: 5, changed: 1000, isRepeat: false))
        #expect(try storage.sets.statistics().firstSequence == 6)
        try expectWhole(Array(roots[1000...]))
    }

    @Test("A collaboration goes whole")
    func drop() throws {
        script.with { $0 = Self.attempts }
        #expect(try storage.sets.apply(Mutation(.dropCollaboration(decks))).sequence == 5)
        #expect(try storage.sets.statistics().roots == 0)
        try storage.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        #expect(try storage.sets.allRoots(of: decks) == [])
    }

    @Test("An edit goes whole")
    func edit() throws {
        script.with { $0 = Self.attempts }
        var edit = Edit(decks)
        edit.removedRoots = Array(roots.prefix(200))
        edit.records = [RecordEdit([1], value: nil, expecting: .version(4))]
        #expect(try storage.sets.apply(Mutation(.edit(edit))).changed == 200)
        #expect(try storage.sets.read { snapshot throws(ServiceError) in try snapshot.record([1]) } == nil)
        try expectWhole(Array(roots[200...]))
    }

    @Test("A removal that finds no room then either has changed nothing, and the reserve is taken again")
    func noRoom() throws {
        script.with { $0 = Self.attempts + [true] }
        #expect(try storage.sets.refusal(of: .removeRoots(decks, Array(roots.prefix(1000)))) == .storageFull)
        try expectWhole(roots)
    }

    @Test("What a reader has kept of the reserve behind a removal is taken for the next removal that needs it")
    func readerBehind() throws {
        try removeBetweenReaders()
        try expectWhole(Array(roots[1000...]))
    }

    private func removeBetweenReaders() throws {
        let (reads, ends) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        script.with { $0 = Self.attempts }
        let isRemoved = Shared(false)
        let sets = try storage.sets
        sets.submit(Mutation(.removeRoots(decks, Array(roots.prefix(500))))) { [sets] result in
            // The writer goes on when somebody reads.
            Thread.detachNewThread { [weak sets] in
                try? sets?.read { _ throws(ServiceError) in
                    reads.signal()
                    ends.wait()
                }
                reads.signal()
            }
            reads.wait()
            isRemoved.with { $0 = (try? result.get()) != nil }
        }
        #expect(becomesTrue { isRemoved.value })
        // This is committed when the writer has tried to take the reserve again.
        try storage.sets.apply(Mutation(.addRoots(decks, [.zero])))
        script.with { $0 = Self.attempts }
        #expect(try storage.sets.refusal(of: .removeRoots(decks, Array(roots[500..<1000]))) == .storageFull)
        ends.signal()
        reads.wait()
        try storage.sets.apply(Mutation(.removeRoots(decks, [.zero])))
        script.with { $0 = Self.attempts }
        #expect(try storage.sets.refusal(of: .removeRoots(decks, Array(roots[500..<1000]))) == nil)
    }

    @Test("The log does not give way to a removal while somebody reads an older snapshot, which keeps its pages")
    func readerOfOlder() throws {
        // In the group, alone, with the pages of the last commit, and without a record.
        script.with { $0 = [Bool](repeating: true, count: 4) }
        let code = try storage.sets.read { _ throws(ServiceError) in
            (try? storage.sets)?.refusal(of: .removeRoots(decks, Array(roots.prefix(1000))))
        }
        #expect(code == .storageFull)
        let statistics = try storage.sets.statistics()
        #expect(statistics.firstSequence == 1 && statistics.lastSequence == 4)
        try expectWhole(roots)
    }

    @Test("In a damaged storage a removal gets the reserve, and nothing is taken again")
    func damaged() throws {
        try storage.sets.health.report(.damaged, "a record is not what was written")
        script.with { $0 = Self.attempts }
        #expect(try storage.sets.apply(Mutation(.removeRoots(decks, Array(roots.prefix(1000))))).changed == 1000)
        let reserve = try storage.listReserve()
        #expect(reserve[0] == 0 && reserve[1] == 0, "\(reserve)")
    }

    @Test("An addition does not get the reserve")
    func addition() throws {
        script.with { $0 = [true, true, true] }
        #expect(try storage.sets.refusal(of: .addRoots(decks, [.zero])) == .storageFull)
        try expectWhole(roots)
    }

    @Test("What a process that ended has left of the reserve is made whole by the next addition")
    func interrupted() throws {
        for (missing, hasRest) in [(ListReserve.lasting, true), ([.first], true), ([.second], false)] {
            storage.close()
            try {
                let environment = try StorageEnvironment(
                    directory: storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
                let transaction = try WriteTransaction(in: environment)
                let reserve = ListReserve(transaction, environment)
                if hasRest { try reserve.take(3, for: .rest) }
                for part in missing { #expect(try reserve.giveUp(part) > 0) }
                try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
                try transaction.commit()
            }()
            try storage.reopen()
            try storage.sets.apply(Mutation(.addRoots(decks, [.zero])))
            try expectReserve()
        }
    }

    @Test("A backup has nothing of the reserve, and neither has the storage that is restored from it")
    func backup() throws {
        let backup = storage.scratch.path + "/backup"
        storage.close()
        let descriptor = open(backup, O_RDWR | O_CREAT, 0o600)
        defer { close(descriptor) }
        _ = try StorageBackup.write(storage.directory, to: descriptor, time: 0, rate: nil, progress: { _ in })
        let restored = storage.scratch.path + "/restored"
        try BackupScene.restore(backup, toDirectory: restored)
        let environment = try StorageEnvironment(directory: restored, bytesMax: 1 << 30, reserveBytes: 1 << 20)
        let reserve = ListReserve(try WriteTransaction(in: environment), environment)
        for part in ListReserve.Part.allCases { #expect(try reserve.pages(part) == 0) }
        #expect(try storage.listReserve()[0] > 0)
    }

    /// A storage that shares a log, with the root hashes of "decks".
    private func sharingStorage() throws -> (Storage, decks: CollaborationIdentifier) {
        let log = MemoryLog()
        var surroundings = log.found()
        surroundings.willCommit = { [script] in
            script.with { !$0.isEmpty && $0.removeFirst() ? ENOSPC : 0 }
        }
        let storage = try Storage(surroundings, sharing: log)
        #expect(becomesTrue { (try? storage.sets.sharing?.segment) == 1 })
        let decks = try storage.create("decks")
        for part in stride(from: 0, to: roots.count, by: 30_000) {
            try storage.sets.apply(Mutation(.addRoots(decks, Array(roots[part..<part + 30_000]))))
        }
        try storage.sets.apply(Mutation(.addRoots(decks, [.zero])))
        return (storage, decks)
    }

    @Test("A storage that shares a log applies what the log has with the reserve, too")
    func shared() throws {
        let (storage, decks) = try sharingStorage()
        // With others, and alone.
        script.with { $0 = [true, true] }
        #expect(try storage.sets.apply(Mutation(.removeRoots(decks, Array(roots.prefix(1000))))).changed == 1000)
        #expect(script.value == [])
        #expect(try storage.sets.allRoots(of: decks) == (roots[1000...] + [.zero]).sorted())
        let reserve = try storage.listReserve()
        #expect(reserve[0] > 0 && reserve[1] > 0 && reserve[2...] == [0, 0], "\(reserve)")
    }

    @Test("A storage that has no room for what the log has tries it each second, and with the reserve less often")
    func sharedWithoutRoom() throws {
        let (storage, decks) = try sharingStorage()
        func transactions() throws -> Int {
            storage.close()
            defer { #expect(throws: Never.self) { try storage.reopen() } }
            let environment = try StorageEnvironment(
                directory: storage.directory, bytesMax: 1 << 30, reserveBytes: 1 << 20)
            return Int(try WriteTransaction(in: environment).number)
        }
        let before = try transactions()
        #expect(becomesTrue { (try? storage.sets.sharing?.segment) == 5 })
        // With others, alone, and with the reserve; then three looks with others and alone.
        script.with { $0 = [Bool](repeating: true, count: 8) }
        #expect(try storage.sets.refusal(of: .removeRoots(decks, Array(roots.prefix(1000)))) == .storageFailed)
        #expect(becomesTrue { (try? storage.sets.statistics().roots) == UInt64(roots.count - 999) })
        #expect(script.value == [])
        // Each use of the reserve makes seven commits.
        let made = try transactions() - before
        #expect((9...16).contains(made), "\(made)")
    }
}
