import Core
import Foundation
import RootSets
import TestSupport
import Testing

/// Commits fail for lack of space as long as they are a whole removal, as on a full disk whose free pages are
/// scattered. `StorageProbe full-disks` fills such disks.
@Suite("Removals in parts")
struct CommitPartsTests {
    private let scratch = ScratchDirectory()
    /// Whether the next commits fail. Later ones don't.
    private let script = Shared<[Bool]>([])
    private let commits = Shared(0)
    private let sets: RootSets
    private let decks: CollaborationIdentifier
    private let roots: [Digest]

    init() throws {
        var random = SeededGenerator(seed: runSeed)
        roots = (0..<5000).map { _ in random.digest() }
        var surroundings = StorageSurroundings()
        surroundings.willCommit = { [script] in
            script.with { !$0.isEmpty && $0.removeFirst() ? ENOSPC : 0 }
        }
        surroundings.didCommit = { [commits] _ in commits.increment() }
        sets = try RootSets(
            RootSets.Configuration(directory: scratch.path + "/data", reserveBytes: 1 << 20), surroundings: surroundings
        )
        decks = try name("decks")
        try sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        try sets.apply(Mutation(.addRoots(decks, roots)))
        var edit = Edit()
        edit.records = [RecordEdit([1], value: [1]), RecordEdit([2], value: [2])]
        try sets.apply(Mutation(.edit(edit)))
        commits.with { $0 = 0 }
    }

    /// In the group, alone, with the pages of the last commit, with a shorter log, and without a record.
    private static let wholeAttempts = [Bool](repeating: true, count: 5)

    private func expectWhole(_ remaining: [Digest]) throws {
        #expect(try sets.allRoots(of: decks) == remaining.sorted())
        #expect(try sets.statistics().roots == UInt64(remaining.count))
        #expect(try sets.apply(Mutation(.addRoots(decks, [.zero]))).changed == 1)
        #expect(try sets.apply(Mutation(.removeRoots(decks, [.zero]))).changed == 1)
        sets.close()
        #expect(try StorageInspection.findings(in: scratch.path + "/data").isEmpty)
    }

    @Test("A removal takes several commits, each of some root hashes, and says how many it has removed")
    func removal() throws {
        script.with { $0 = Self.wholeAttempts }
        var random = SeededGenerator(seed: runSeed)
        let absent = (0..<300).map { _ in random.digest() }.filter { !roots.contains($0) }
        let receipt = try sets.apply(Mutation(.removeRoots(decks, roots.prefix(1000) + absent)))
        #expect(receipt.changed == 1000 && !receipt.isRepeat)
        #expect(commits.value == (1000 + absent.count + 127) / 128 + 2)
        #expect(receipt.sequence == 3 + UInt64(commits.value))
        // The log was given up for it.
        #expect(try sets.statistics().firstSequence == receipt.sequence + 1)
        try expectWhole(Array(roots[1000...]))
    }

    @Test("A collaboration is emptied in parts and then dropped")
    func drop() throws {
        script.with { $0 = Self.wholeAttempts }
        let receipt = try sets.apply(Mutation(.dropCollaboration(decks)))
        #expect(receipt.changed == 1)
        #expect(commits.value == (roots.count + 2047) / 2048 + 2)
        #expect(try sets.statistics().collaborations == 0)
        try sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        try expectWhole([])
    }

    @Test("A part that finds no room is halved")
    func halved() throws {
        // The log is emptied, and neither 128 root hashes find room nor 64.
        script.with { $0 = Self.wholeAttempts + [false, true, true, true, true] }
        #expect(try sets.apply(Mutation(.removeRoots(decks, Array(roots.prefix(100))))).changed == 100)
        #expect(commits.value == 1 + 4 + 1)
        try expectWhole(Array(roots[100...]))
    }

    @Test("An edit happens whole or not at all")
    func edit() throws {
        script.with { $0 = Self.wholeAttempts }
        var edit = Edit(decks)
        edit.removedRoots = Array(roots.prefix(200))
        edit.records = [RecordEdit([1], value: nil, expecting: .version(3))]
        #expect(sets.refusal(of: .edit(edit)) == .storageFull)
        #expect(commits.value == 0 && script.value == [])
        #expect(try sets.apply(Mutation(.edit(edit))).changed == 200)
        try expectWhole(Array(roots[200...]))
    }

    @Test("A removal for whose parts there is no room either is refused, and an addition is never committed in parts")
    func noRoom() throws {
        script.with { $0 = Array(repeating: true, count: 1000) }
        #expect(sets.refusal(of: .removeRoots(decks, roots)) == .storageFull)
        #expect(sets.refusal(of: .dropCollaboration(decks)) == .storageFull)
        #expect(sets.refusal(of: .addRoots(decks, [.zero])) == .storageFull)
        #expect(commits.value == 0)
        script.with { $0 = [] }
        try expectWhole(roots)
    }

    @Test("What a removal has removed before it finds no room stays removed, and a later one gets the rest")
    func interrupted() throws {
        // The log is emptied, two parts pass, and the third one does not, with a single root hash neither.
        script.with { $0 = Self.wholeAttempts + [false, false, false] + Array(repeating: true, count: 16) }
        #expect(sets.refusal(of: .removeRoots(decks, Array(roots.prefix(1000)))) == .storageFull)
        let gone = Set(roots.prefix(1000).sorted().prefix(256))
        #expect(try sets.allRoots(of: decks) == roots.filter { !gone.contains($0) }.sorted())
        #expect(try sets.apply(Mutation(.removeRoots(decks, Array(roots.prefix(1000))))).changed == 744)
        try expectWhole(Array(roots[1000...]))
    }
}
