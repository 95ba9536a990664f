import Core
import Foundation
@testable import RootSets
import TestSupport
import Testing

@Suite("Bucket directories")
struct BucketDirectoryTests {
    private let storage: Storage
    private let names: [CollaborationIdentifier]
    private let absent: [CollaborationIdentifier]
    private let universe: [Digest]
    private let lookup = CollaborationLookup()

    init() throws {
        storage = try Storage()
        var random = SeededGenerator(seed: runSeed)
        names = try (0..<120).map { try name("collaboration \($0)") }
        absent = try (0..<40).map { try name("nobody \($0)") }
        var universe: [Digest] = [.zero, Digest([UInt8](repeating: 0xff, count: 32)) ?? .zero]
        // As many roots as may share their first eight bytes, and roots from all over.
        for _ in 0..<Limits.rootsPerPrefixMax {
            universe.append(Digest([7, 7, 7, 7, 7, 7, 7, 7] + random.bytes(24)) ?? .zero)
        }
        for _ in 0..<1500 { universe.append(random.digest()) }
        self.universe = universe
    }

    /// Creates a collaboration of each name, and returns their sets, which are empty.
    private func createAll() throws -> [CollaborationIdentifier: Set<Digest>] {
        for name in names { try storage.sets.apply(Mutation(.createCollaboration(name, .challenge))) }
        return Dictionary(uniqueKeysWithValues: names.map { ($0, []) })
    }

    /// Answers of a batch look-up for all pairs of a name and some roots, and whether directories answered.
    private func expectSame(
        _ sets: [CollaborationIdentifier: Set<Digest>], _ random: inout SeededGenerator, _ context: String
    ) throws -> (packed: Bool, large: Bool) {
        let queried = (names + absent).shuffled(using: &random)
        let probes =
            (0..<60).map { _ in universe[Int.random(in: universe.indices, using: &random)] } + universe.prefix(4)
        let area = queried.map(\.utf8)
        let scratch = ScratchBuffer<CollaborationView?>(repeating: nil, count: queried.count)
        let views = scratch.elements
        return try storage.sets.read { snapshot throws(ServiceError) in
            let bytes = area.flatMap { $0 }
            return try bytes.withRawBytes { bytes throws(ServiceError) -> (Bool, Bool) in
                var offset = 0
                let borrowed = area.map { name in
                    defer { offset += name.count }
                    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + name.count])
                }
                do {
                    try borrowed.withUnsafeBufferPointer { names throws(ServiceError) in
                        try lookup.find(names, for: 100_000, in: snapshot, into: views)
                    }
                } catch let error as ServiceError {
                    throw error
                } catch {
                    throw ServiceError(.internalFault, "\(error)")
                }
                var isLargeAnswered = false
                for (index, name) in queried.enumerated() {
                    #expect((views[index] != nil) == (sets[name] != nil), "\(context), \(name)")
                    let members = try MemberLookup(borrowed[index], lookups: 100_000, in: snapshot)
                    #expect((members != nil) == (sets[name] != nil), "\(context), \(name)")
                    guard let view = views[index], let roots = sets[name] else { continue }
                    isLargeAnswered = isLargeAnswered || view.directory != nil
                    for probe in probes {
                        #expect(
                            try snapshot.contains(probe, in: view) == roots.contains(probe),
                            "\(context), \(name), \(probe)")
                        #expect(
                            try members?.contains(probe, in: snapshot) == roots.contains(probe),
                            "\(context), \(name), \(probe)")
                    }
                }
                do throws(StorageFailure) {
                    return (try snapshot.directory(lookups: 0) != nil, isLargeAnswered)
                } catch {
                    throw error.asServiceError
                }
            }
        }
    }

    @Test("Directories outlive commits of records, but not a change of the sets, also one that an edit makes")
    func commitsOfRecords() async throws {
        var random = SeededGenerator(seed: runSeed &+ 2)
        var sets = try createAll()
        try storage.sets.apply(Mutation(.addRoots(names[0], Array(universe.prefix(700)))))
        sets[names[0]] = Set(universe.prefix(700))
        for round in 0..<6 {
            let context = "seed \(runSeed), round \(round)"
            for attempt in 0..<400 {
                let (packed, large) = try expectSame(sets, &random, "\(context), attempt \(attempt)")
                if packed, large { break }
                try #require(attempt < 399, "\(context): no directories")
                try await Task.sleep(for: .milliseconds(5))
            }
            // Enough commits to reuse the pages that the first ones freed.
            for commit in 0..<20 {
                var edit = Edit(commit % 2 == 0 ? names[0] : nil)
                edit.records = (0..<8).map { _ in
                    RecordEdit(
                        [UInt8.random(in: 0...40, using: &random)],
                        value: random.bytes(Int.random(in: 1...1500, using: &random)))
                }
                try storage.sets.apply(Mutation(.edit(edit)))
                let (packed, large) = try expectSame(sets, &random, "\(context), commit \(commit)")
                #expect(packed && large, "\(context): commit \(commit) of records left no directory")
            }
            var edit = Edit(names[round % 2])
            let (added, removed) = (universe[800 + round], universe[2 + round])
            if round < 3 { edit.addedRoots = [added] } else { edit.removedRoots = [removed] }
            let receipt = try storage.sets.apply(Mutation(.edit(edit)))
            if round < 3 { sets[names[round % 2]]?.insert(added) } else { sets[names[round % 2]]?.remove(removed) }
            guard receipt.changed > 0 else { continue }
            // Zero look-ups are counted here, so no directory is being built meanwhile.
            let isOutlived = try storage.sets.read { snapshot throws(ServiceError) in
                do throws(StorageFailure) {
                    return try snapshot.directory(lookups: 0) != nil
                } catch {
                    throw error.asServiceError
                }
            }
            #expect(!isOutlived, "\(context): a directory of sets that have changed")
            let (_, large) = try expectSame(sets, &random, "\(context), changed")
            #expect(!large, "\(context): a directory of a large set that has changed")
        }
    }

    @Test("Sets that are looked up now and then keep no directory from one that is looked up often")
    func manySets() throws {
        let deck = try storage.create("deck")
        try storage.sets.apply(Mutation(.addRoots(deck, universe)))
        let directories = BucketDirectories(StorageSurroundings())
        try storage.sets.read { snapshot throws(ServiceError) in
            let (transaction, environment) = (snapshot.transaction, snapshot.environment)
            func directory(_ name: [UInt8], lookups: Int = 64) -> BucketDirectory? {
                let found = try? directories.directory(
                    of: .large(name), for: transaction, in: environment, lookups: lookups, buckets: { 1000 })
                return found ?? nil
            }
            for round in 0..<100 {
                _ = directory(deck.utf8)
                for number in 0..<100 { #expect(directory(Array("set \(round) \(number)".utf8)) == nil) }
            }
            // It is being built by now: no look-up more leads to that.
            #expect(becomesTrue { directory(deck.utf8, lookups: 0) != nil })
        }
    }

    @Test("Look-ups have the same answers before there is a directory, with one, and after the next commit")
    func sameAnswers() async throws {
        var random = SeededGenerator(seed: runSeed &+ 1)
        var sets = try createAll()
        var answered = (packed: 0, large: 0)
        for round in 0..<12 {
            // Two names are large, one of them from the third round on.
            for name in names.shuffled(using: &random).prefix(30) + names.prefix(round < 3 ? 1 : 2) {
                let isLarge = name == names[0] || name == names[1] && round >= 3
                let roots = Array(
                    universe.shuffled(using: &random).prefix(isLarge ? 700 : Int.random(in: 0...6, using: &random)))
                if Bool.random(using: &random) || isLarge && round < 6 {
                    try storage.sets.apply(Mutation(.addRoots(name, roots)))
                    sets[name]?.formUnion(roots)
                } else {
                    try storage.sets.apply(Mutation(.removeRoots(name, roots)))
                    sets[name]?.subtract(roots)
                }
            }
            for attempt in 0..<60 {
                let context = "seed \(runSeed), round \(round), attempt \(attempt)"
                let (packed, large) = try expectSame(sets, &random, context)
                if packed { answered.packed += 1 }
                if large { answered.large += 1 }
                if packed, large || round > 8 { break }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        #expect(answered.packed >= 12, "seed \(runSeed): directories hardly answered")
        #expect(answered.large >= 6, "seed \(runSeed): directories of large collaborations hardly answered")
    }
}
