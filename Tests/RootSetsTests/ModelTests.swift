import Core
import Foundation
import RootSets
import TestSupport
import Testing

/// Random mutations over few names and a fixed universe of root hashes.
struct Steps {
    var random: SeededGenerator
    let names: [CollaborationIdentifier]
    let universe: [Digest]
    var past: [Mutation] = []

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        names = try ["a", "a!", "aa", "\u{fc}", String(repeating: "x", count: 127), String(repeating: "x", count: 128)]
            .map { try name($0) }
        var universe: [Digest] = [.zero, Digest([UInt8](repeating: 0xff, count: 32)) ?? .zero]
        // As many roots as may share their first eight bytes: at both ends and in the middle. Those at the ends are the
        // same with every seed, because several steps may be made in the same sets.
        var same = SeededGenerator(seed: 1)
        for prefix in [[UInt8](repeating: 0, count: 8), [UInt8](repeating: 0xff, count: 8), random.bytes(8)] {
            let count = Limits.rootsPerPrefixMax - 1
            for _ in 0..<count { universe.append(Digest(prefix + same.bytes(24)) ?? .zero) }
        }
        // Neighbours that differ from the prefix's last byte on, and roots of any value.
        for _ in 0..<200 { universe.append(Digest([9, 9, 9, 9, 9, 9, 9] + random.bytes(25)) ?? .zero) }
        for _ in 0..<1600 { universe.append(random.digest()) }
        self.universe = universe
    }

    /// `growth`: how likely an add is, from 0 to 1, against a removal.
    /// `records`: those that there are, so that some edits expect the right version.
    mutating func next(growth: Double, _ records: [[UInt8]: StoredRecord] = [:]) -> Mutation {
        if !past.isEmpty, Int.random(in: 0..<12, using: &random) == 0 {
            let old = past[Int.random(in: past.indices, using: &random)]
            // Every third one has other content than the first time.
            guard Int.random(in: 0..<3, using: &random) == 0 else { return old }
            return Mutation(identifier: old.identifier, change(growth: growth, records))
        }
        let identifier = UInt128(random.next()) << 64 | UInt128(random.next())
        let mutation = Mutation(identifier: MutationIdentifier(identifier), change(growth: growth, records))
        past.append(mutation)
        return mutation
    }

    private mutating func change(growth: Double, _ records: [[UInt8]: StoredRecord]) -> Change {
        let name = names[Int.random(in: names.indices, using: &random)]
        switch Int.random(in: 0..<60, using: &random) {
        case 0..<8:
            let policies: [ProofPolicy] = [.challenge, .challenge, .challenge, .deviceNonce(windowSeconds: 60)]
            return .createCollaboration(name, policies[Int.random(in: 0..<4, using: &random)])
        case 8: return .dropCollaboration(name)
        case 9..<24: return .edit(edit(of: Int.random(in: 0..<4, using: &random) == 0 ? nil : name, records))
        default:
            let roots = someRoots()
            return Double.random(in: 0..<1, using: &random) < growth
                ? .addRoots(name, roots) : .removeRoots(name, roots)
        }
    }

    private mutating func edit(of name: CollaborationIdentifier?, _ records: [[UInt8]: StoredRecord]) -> Edit {
        let keys = ["a", "a\0", "ab", "b", "b\u{7f}", String(repeating: "k", count: 500)].map { Array($0.utf8) }
        var edit = Edit(name)
        if name != nil {
            edit.creation = Bool.random(using: &random) ? .challenge : nil
            edit.dropsCollaboration = Int.random(in: 0..<20, using: &random) == 0
            edit.addedRoots = someRoots()
            edit.removedRoots = someRoots()
        }
        if Int.random(in: 0..<8, using: &random) == 0 {
            edit.removedRanges = [
                RecordRange(keys.randomElement(using: &random) ?? [], keys.randomElement(using: &random) ?? [])
            ]
        }
        for key in keys where Int.random(in: 0..<4, using: &random) == 0 {
            let right: RecordEdit.Expectation = records[key].map { .version($0.version) } ?? .absent
            if Int.random(in: 0..<6, using: &random) == 0 {
                edit.records.append(.checking(key, expecting: right))
                continue
            }
            let wrong: [RecordEdit.Expectation] = [.anything, .absent, .present, .version(3)]
            edit.records.append(
                RecordEdit(
                    key,
                    value: Int.random(in: 0..<4, using: &random) == 0
                        ? nil : random.bytes(Int.random(in: 0..<90, using: &random)),
                    expecting: Int.random(in: 0..<4, using: &random) == 0
                        ? wrong.randomElement(using: &random) ?? right : right))
        }
        edit.request = RequestDigest(logged: UInt128(Int.random(in: 0..<4, using: &random)))
        if Bool.random(using: &random) {
            edit.records.append(RecordEdit(Array("log".utf8), isSequenced: true, value: random.bytes(5)))
        }
        return edit
    }

    /// A few random roots, or a run of neighbours, or a large part of the universe; repeats are likely.
    private mutating func someRoots() -> [Digest] {
        let count = [0, 1, 1, 3, 30, 200, 900][Int.random(in: 0..<7, using: &random)]
        if Bool.random(using: &random) {
            let start = Int.random(in: universe.indices, using: &random)
            return (0..<count).map { universe[(start + $0) % universe.count] }
        }
        return (0..<count).map { _ in universe[Int.random(in: universe.indices, using: &random)] }
    }
}

@Suite("Root sets against a model")
struct ModelTests {
    @Test("Random mutations leave what a dictionary would hold, through a reopening, and the log replays it")
    func randomMutations() throws {
        var steps = try Steps(seed: runSeed)
        let storage = try Storage()
        var model = RootModel()
        var largest = 0
        let count = 900
        for step in 0..<count {
            let context = "seed \(runSeed), step \(step)"
            let growth = step % 300 < 170 ? 0.8 : 0.1
            let mutation = steps.next(growth: growth, model.records)
            let expected = model.apply(mutation)
            #expect(try storage.sets.outcome(of: mutation) == expected, "\(context)")
            largest = max(largest, model.entries.values.map(\.roots.count).max() ?? 0)
            if step == count / 2 { try storage.reopen() }
            if step % 30 == 29 || step == count / 2 {
                try expectSame(
                    storage.sets, model, probes: steps.universe,
                    pages: [1000, 57, 4096][step / 30 % 3], context)
            }
        }
        #expect(largest > 1000, "seed \(runSeed): the sets stayed too small to test much")

        let context = "seed \(runSeed), replay"
        let changes = try storage.sets.allChanges(pages: 100)
        #expect(changes == model.log, "\(context)")
        let replica = try Storage()
        for change in changes {
            let receipt = try replica.sets.apply(change.mutation)
            #expect(
                receipt == MutationReceipt(sequence: change.sequence, changed: change.changed, isRepeat: false),
                "\(context), sequence \(change.sequence)")
        }
        try expectSame(replica.sets, model, probes: steps.universe, context)
    }

    @Test("A set of 50,000 root hashes from two adds has exactly these, and is empty when they are removed")
    func bigSet() throws {
        var random = SeededGenerator(seed: runSeed)
        let storage = try Storage()
        let big = try name("big")
        let roots = (0..<50_000).map { _ in random.digest() }
        let strangers = (0..<1000).map { _ in random.digest() }
        _ = try storage.sets.apply(Mutation(.createCollaboration(big, .challenge)))
        let first = try storage.sets.apply(Mutation(.addRoots(big, Array(roots[..<32_768]))))
        #expect(first.changed == 32_768)
        let second = try storage.sets.apply(Mutation(.addRoots(big, Array(roots[32_768...]))))
        #expect(second.changed == 50_000 - 32_768)
        #expect(try storage.sets.summary(of: big)?.rootCount == 50_000)
        let isListed = try storage.sets.allRoots(of: big) == roots.sorted()
        #expect(isListed, "seed \(runSeed)")
        #expect(try storage.sets.test(roots, in: big)?.allSatisfy { $0 } == true, "seed \(runSeed)")
        #expect(try storage.sets.test(strangers, in: big)?.contains(true) == false, "seed \(runSeed)")
        #expect(try storage.sets.apply(Mutation(.addRoots(big, Array(roots[..<100])))).changed == 0)
        #expect(try storage.sets.apply(Mutation(.removeRoots(big, Array(roots[..<32_768])))).changed == 32_768)
        let isLeft = try storage.sets.allRoots(of: big) == roots[32_768...].sorted()
        #expect(isLeft, "seed \(runSeed)")
        #expect(try storage.sets.apply(Mutation(.removeRoots(big, Array(roots[32_768...])))).changed == 17_232)
        #expect(try storage.sets.allRoots(of: big) == [])
    }

    @Test("A name that is a prefix of another has a set of its own")
    func prefixNames() throws {
        var random = SeededGenerator(seed: runSeed)
        let storage = try Storage()
        let long = String(repeating: "a", count: 128)
        let names = try ["a", "a ", "a!", "aa", String(long.dropLast()), long, "a\u{80}", "b"].map { try name($0) }
        var model = RootModel()
        var all: [Digest] = []
        for name in names {
            let roots = (0..<200).map { _ in random.digest() }
            all += roots
            for change in [Change.createCollaboration(name, .challenge), .addRoots(name, roots)] {
                let mutation = Mutation(change)
                #expect(try storage.sets.outcome(of: mutation) == model.apply(mutation), "seed \(runSeed)")
            }
        }
        try expectSame(storage.sets, model, probes: all, pages: 33, "seed \(runSeed)")
        for name in names.shuffled(using: &random) {
            let mutation = Mutation(.dropCollaboration(name))
            #expect(try storage.sets.outcome(of: mutation) == model.apply(mutation), "seed \(runSeed), \(name)")
            try expectSame(storage.sets, model, probes: all, "seed \(runSeed), without \(name)")
        }
    }
}
