import Core
import Foundation
import RootSets
import TestSupport
import Testing

/// Adds random root hashes, `batch` at a time, until that is refused. What was acknowledged, and the refusal.
func fill(
    _ sets: RootSets, _ name: CollaborationIdentifier, batch: Int, random: inout SeededGenerator
) throws -> (roots: [Digest], refused: [Digest], code: ServiceError.Code) {
    var roots: [Digest] = []
    for _ in 0..<5000 {
        let added = (0..<batch).map { _ in random.digest() }
        switch sets.outcome(of: Mutation(.addRoots(name, added))) {
        case .success(let receipt):
            #expect(receipt.changed == UInt64(batch))
            roots += added
        case .failure(let code): return (roots, added, code)
        }
    }
    try #require(Bool(false), "the storage never became full")
    return (roots, [], .internalFault)
}

/// Adds root hashes as `fill` does, then fewer and fewer at a time, until there is no room for one. The refusal is the
/// first one, of a whole batch.
func fillUp(
    _ sets: RootSets, _ name: CollaborationIdentifier, batch: Int, random: inout SeededGenerator
) throws -> (roots: [Digest], refused: [Digest], code: ServiceError.Code) {
    var all = try fill(sets, name, batch: batch, random: &random)
    var batch = batch
    while batch > 1 {
        batch = max(1, batch / 4)
        all.roots += try fill(sets, name, batch: batch, random: &random).roots
    }
    return all
}

/// The size of a storage's data file.
func fileBytes(_ directory: String) throws -> Int {
    var status = stat()
    try #require(stat(directory + "/data.mdb", &status) == 0)
    return Int(status.st_size)
}

/// Opens a storage whose last holder may need a moment to let go.
func reopened(
    _ configuration: RootSets.Configuration, log: Log = .none
) throws -> RootSets {
    for _ in 0..<2000 {
        if let sets = try? RootSets(configuration, log: log) { return sets }
        usleep(1000)
    }
    return try RootSets(configuration, log: log)
}

@Suite("Space", .serialized)
struct SpaceTests {
    /// A storage of at most 2 MiB, which some thousand root hashes fill.
    private func smallStorage() throws -> Storage {
        try Storage {
            $0.sizeLimitBytes = 2 << 20
            $0.logRetentionBytes = 32 << 10
        }
    }

    @Test("A full storage refuses adds, loses nothing, lets removals through, and takes adds again after them")
    func fullStorage() throws {
        var random = SeededGenerator(seed: runSeed)
        let storage = try smallStorage()
        let (decks, other) = (try storage.create("decks"), try storage.create("other"))
        let some = (0..<3000).map { _ in random.digest() }
        _ = try storage.sets.apply(Mutation(.addRoots(other, some)))
        let filled = try fillUp(storage.sets, decks, batch: 200, random: &random)
        #expect(filled.code == .storageFull, "seed \(runSeed)")
        #expect(filled.roots.count > 5000)
        #expect(try storage.sets.allRoots(of: decks) == filled.roots.sorted(), "seed \(runSeed)")
        #expect(try storage.sets.refusal(of: .addRoots(decks, filled.refused)) == .storageFull)
        #expect(try storage.sets.refusal(of: .createCollaboration(try name("new"), .challenge)) == .storageFull)

        try storage.reopen()
        #expect(try storage.sets.refusal(of: .addRoots(decks, filled.refused)) == .storageFull)
        // Creating what exists needs no room.
        #expect(try storage.sets.refusal(of: .createCollaboration(decks, .challenge)) == nil)
        let removed = filled.roots[..<(filled.roots.count / 10 * 9)]
        for start in stride(from: 0, to: removed.count, by: 500) {
            let some = Array(removed[start..<min(start + 500, removed.count)])
            #expect(try storage.sets.apply(Mutation(.removeRoots(decks, some))).changed == UInt64(some.count))
        }
        let kept = Array(filled.roots[removed.count...])
        #expect(try storage.sets.allRoots(of: decks) == kept.sorted(), "seed \(runSeed)")
        #expect(try storage.sets.refusal(of: .addRoots(decks, filled.refused)) == nil)

        let again = try fill(storage.sets, decks, batch: 200, random: &random)
        #expect(again.code == .storageFull)
        #expect(try storage.sets.refusal(of: .dropCollaboration(decks)) == nil)
        #expect(try storage.sets.refusal(of: .addRoots(other, filled.refused)) == nil)
        #expect(try storage.sets.allRoots(of: other) == (some + filled.refused).sorted())
        #expect(try storage.sets.statistics().roots == UInt64(some.count + filled.refused.count))
    }

    @Test("Of adds and removals that come together in a full storage only adds are refused")
    func mixedGroup() throws {
        var random = SeededGenerator(seed: runSeed)
        let storage = try smallStorage()
        let decks = try storage.create("decks")
        let sets = try storage.sets
        let filled = try fillUp(sets, decks, batch: 200, random: &random)
        #expect(filled.code == .storageFull)
        let outcomes = Shared<[String: Int]>([:])
        for index in 0..<40 {
            let isAdd = index % 2 == 0
            let change: Change =
                isAdd
                ? .addRoots(decks, [random.digest()]) : .removeRoots(decks, [filled.roots[index]])
            sets.submit(Mutation(change)) { result in
                let text =
                    switch result {
                    case .success(let receipt): "changed \(receipt.changed)"
                    case .failure(let error): error.code.name
                    }
                outcomes.with { $0["\(isAdd ? "add" : "remove"): \(text)", default: 0] += 1 }
            }
        }
        sets.close()
        // The first add finds no room. Later ones may use what removals have freed.
        let counts = outcomes.value
        let (refused, added) = (counts["add: storage-full", default: 0], counts["add: changed 1", default: 0])
        #expect(counts["remove: changed 1"] == 20, "\(counts)")
        #expect(refused > 0 && refused + added == 20, "\(counts)")
        #expect(try sets.summary(of: decks)?.rootCount == UInt64(filled.roots.count - 20 + added))
    }

    @Test(
        "On a full disk adds end in storage-full, removals go on, and everything acknowledged survives",
        .enabled(if: SmallDisk.isAvailable, "needs the right to mount a small disk"))
    func fullDisk() throws {
        var random = SeededGenerator(seed: runSeed)
        let disk = try #require(SmallDisk(mebibytes: 16))
        let configuration = RootSets.Configuration(
            directory: disk.path + "/data", sizeLimitBytes: 1 << 30, reserveBytes: 4 << 20,
            logRetentionBytes: 1 << 20)
        let decks = try name("decks")
        var kept: Set<Digest> = []
        do {
            let sets = try RootSets(configuration)
            try sets.apply(Mutation(.createCollaboration(decks, .challenge)))
            let filled = try fillUp(sets, decks, batch: 2000, random: &random)
            #expect(filled.code == .storageFull, "seed \(runSeed)")
            kept = Set(filled.roots)
            #expect(kept.count > 20_000)
            // The disk is full too, so only the reserve has room for the next commit.
            let hog = open(disk.path + "/hog", O_WRONLY | O_CREAT, 0o600)
            let block = [UInt8](repeating: 1, count: 1 << 16)
            while write(hog, block, block.count) > 0 {}
            close(hog)
            for _ in 0..<20 {
                let some = Array(kept.prefix(300))
                #expect(sets.refusal(of: .removeRoots(decks, some)) == nil, "seed \(runSeed)")
                kept.subtract(some)
            }
            #expect(try sets.allRoots(of: decks) == inOrder(kept))
            sets.close()
        }
        let sets = try reopened(configuration)
        #expect(try sets.allRoots(of: decks) == inOrder(kept), "seed \(runSeed)")
        #expect(sets.refusal(of: .removeRoots(decks, Array(kept.prefix(10)))) == nil)
        sets.close()
        withExtendedLifetime(disk) {}
    }

    @Test(
        "On a full disk additions use what removals have freed, also after a restart, and the log tells",
        .enabled(if: SmallDisk.isAvailable, "needs the right to mount a small disk"))
    func roomOnFullDisk() throws {
        var random = SeededGenerator(seed: runSeed)
        let disk = try #require(SmallDisk(mebibytes: 24))
        let configuration = RootSets.Configuration(
            directory: disk.path + "/data", sizeLimitBytes: 1 << 30, reserveBytes: 4 << 20, logRetentionBytes: 4 << 20)
        let logged = Shared<[String]>([])
        let (decks, notes) = (try name("decks"), try name("notes"))
        let batch = Limits.rootsPerRequestMax / 4
        do {
            let sets = try RootSets(configuration, log: Log { line in logged.with { $0.append("\(line)") } })
            try sets.apply(Mutation(.createCollaboration(decks, .challenge)))
            try sets.apply(Mutation(.createCollaboration(notes, .challenge)))
            try sets.apply(Mutation(.addRoots(notes, (0..<4000).map { _ in random.digest() })))
            let filled = try fillUp(sets, decks, batch: batch, random: &random)
            let refusal = #expect(throws: ServiceError.self) {
                try sets.apply(Mutation(.addRoots(decks, filled.refused)))
            }
            #expect(refusal?.code == .storageFull)
            #expect(refusal?.reason.contains("the disk is full: free some of it, drop collaborations") == true)
            // Whether an addition of the usual size had room beside the first refused one depends on the seed.
            let told = logged.value
            #expect(
                told.first?.contains("additions are refused") == true && told.first?.contains("the disk ") == true,
                "\(told), seed \(runSeed)")
            // Neither a look nor an addition that is small enough for what a removal has freed says that there is room.
            for _ in 0..<30 {
                sets.lookForRoom()
                #expect(sets.lacksRoom, "seed \(runSeed)")
                usleep(50_000)
            }
            #expect(sets.refusal(of: .dropCollaboration(notes)) == nil)
            #expect(sets.refusal(of: .addRoots(decks, [random.digest()])) == nil, "seed \(runSeed)")
            #expect(logged.value == told, "seed \(runSeed)")
            // What was removed gives room for as much, although the file does not become smaller.
            let removed = Array(filled.roots[..<batch])
            #expect(sets.refusal(of: .removeRoots(decks, removed)) == nil, "seed \(runSeed)")
            #expect(sets.refusal(of: .dropCollaboration(decks)) == nil)
            #expect(sets.refusal(of: .createCollaboration(decks, .challenge)) == nil, "seed \(runSeed)")
            #expect(
                becomesTrue {
                    sets.lookForRoom()
                    return logged.value.count > told.count
                })
            #expect(logged.value == told + ["additions find room again"], "\(logged.value), seed \(runSeed)")
            sets.close()
        }
        let sets = try reopened(configuration)
        for _ in 0..<2 {
            let again = try fill(sets, decks, batch: batch, random: &random)
            #expect(again.roots.count >= batch, "seed \(runSeed)")
            #expect(sets.refusal(of: .dropCollaboration(decks)) == nil)
            #expect(sets.refusal(of: .createCollaboration(decks, .challenge)) == nil)
        }
        sets.close()
        withExtendedLifetime(disk) {}
    }

    @Test(
        "A disk that has no room besides the reserve is told so: removing does not help",
        .enabled(if: SmallDisk.isAvailable, "needs the right to mount a small disk"))
    func diskWithoutRoom() throws {
        let disk = try #require(SmallDisk(mebibytes: 3))
        let sets = try RootSets(RootSets.Configuration(directory: disk.path + "/data", reserveBytes: 4 << 20))
        let refusal = #expect(throws: ServiceError.self) {
            try sets.apply(Mutation(.createCollaboration(try name("decks"), .challenge)))
        }
        #expect(refusal?.code == .storageFull && refusal?.reason.contains("only more room on it helps") == true)
        // A look takes nothing of such a disk.
        let free = try #require(try disk.freeBytes)
        try #require(free > 1 << 16)
        for _ in 0..<20 {
            sets.lookForRoom()
            usleep(50_000)
        }
        #expect(try disk.freeBytes == free && sets.lacksRoom)
        sets.close()
        withExtendedLifetime(disk) {}
    }

    @Test("The data file stays within the limit and the reserve, and at the limit every removal passes")
    func sizeOnDisk() throws {
        var random = SeededGenerator(seed: runSeed)
        let (limit, reserve) = (24 << 20, 4 << 20)
        let storage = try Storage {
            ($0.sizeLimitBytes, $0.reserveBytes) = (limit, reserve)
        }
        let decks = try storage.create("decks")
        let sets = try storage.sets
        let filled = try fillUp(sets, decks, batch: Limits.rootsPerRequestMax / 2, random: &random)
        #expect(filled.roots.count > 4 * Limits.rootsPerRequestMax, "seed \(runSeed): \(filled.roots.count)")
        var used = try sets.statistics().usedBytes
        #expect(used <= limit && used > limit / 3, "seed \(runSeed): \(used)")
        #expect(try limit / 4 * 3...limit + reserve ~= fileBytes(storage.directory))
        for root in filled.roots[..<1000] {
            guard sets.refusal(of: .removeRoots(decks, [root])) == nil else {
                try #require(Bool(false), "a removal was refused, seed \(runSeed)")
                return
            }
        }
        // The largest removals, which change every page.
        let left = filled.roots[1000...]
        for start in [0, Limits.rootsPerRequestMax] {
            let some = Array(left.dropFirst(start).prefix(Limits.rootsPerRequestMax))
            #expect(sets.refusal(of: .removeRoots(decks, some)) == nil, "seed \(runSeed)")
        }
        #expect(try fileBytes(storage.directory) <= limit + reserve)
        #expect(sets.refusal(of: .dropCollaboration(decks)) == nil, "seed \(runSeed)")
        let before = used
        used = try sets.statistics().usedBytes
        #expect(used < before / 2)
        #expect(sets.refusal(of: .createCollaboration(decks, .challenge)) == nil)
        let again = try fill(sets, decks, batch: Limits.rootsPerRequestMax / 2, random: &random)
        #expect(again.roots.count >= Limits.rootsPerRequestMax, "seed \(runSeed): \(again.roots.count)")
        #expect(try fileBytes(storage.directory) <= limit + reserve)
        let statistics = try sets.statistics()
        #expect(statistics.fileBytes <= limit + reserve && statistics.usedBytes <= limit)
    }

    @Test("With a smaller limit than the data have, removals pass, and additions do when enough was removed")
    func smallerLimit() throws {
        var random = SeededGenerator(seed: runSeed)
        let limit = Shared(16 << 20)
        let storage = try Storage {
            ($0.sizeLimitBytes, $0.logRetentionBytes) = (limit.value, 64 << 10)
        }
        let decks = try storage.create("decks")
        let roots = (0..<100_000).map { _ in random.digest() }
        for start in stride(from: 0, to: roots.count, by: 5000) {
            _ = try storage.sets.apply(Mutation(.addRoots(decks, Array(roots[start..<(start + 5000)]))))
        }
        limit.with { $0 = 2 << 20 }
        try storage.reopen()
        #expect(try storage.sets.refusal(of: .addRoots(decks, [random.digest()])) == .storageFull)
        for start in stride(from: 0, to: roots.count, by: 5000) {
            let some = Array(roots[start..<(start + 5000)])
            #expect(try storage.sets.refusal(of: .removeRoots(decks, some)) == nil, "seed \(runSeed), \(start)")
        }
        #expect(try storage.sets.refusal(of: .addRoots(decks, [random.digest()])) == nil, "seed \(runSeed)")
    }

    @Test(
        "A new storage on a full disk is refused with storage-full",
        .enabled(if: SmallDisk.isAvailable, "needs the right to mount a small disk"))
    func newOnFullDisk() throws {
        let disk = try #require(SmallDisk(mebibytes: 1))
        let hog = open(disk.path + "/hog", O_WRONLY | O_CREAT, 0o600)
        let block = [UInt8](repeating: 1, count: 4096)
        while write(hog, block, block.count) > 0 {}
        close(hog)
        let configuration = RootSets.Configuration(directory: disk.path + "/data")
        #expect(ServiceError.code { () throws(ServiceError) in _ = try RootSets(configuration) } == .storageFull)
        withExtendedLifetime(disk) {}
    }
}

@Suite("Opening")
struct OpeningTests {
    /// The path of a closed storage's data file with some thousand root hashes in it.
    private func filled() throws -> Storage {
        var random = SeededGenerator(seed: runSeed)
        let storage = try Storage()
        let decks = try storage.create("decks")
        _ = try storage.sets.apply(Mutation(.addRoots(decks, (0..<10_000).map { _ in random.digest() })))
        try storage.reopen()
        storage.close()
        return storage
    }

    /// What opening throws, once nobody holds the directory any more.
    private func refusal(_ storage: Storage) -> ServiceError.Code? {
        var code: ServiceError.Code?
        _ = becomesTrue {
            code = ServiceError.code { () throws(ServiceError) in _ = try storage.open() }
            return code != .storageInUse
        }
        return code
    }

    @Test(
        "A data file cut short is damaged, wherever it is cut",
        arguments: [1, 100, 4096, 8192, 12_288, 100_000, 320_000])
    func truncated(bytes: Int) throws {
        let storage = try filled()
        try #require(truncate(storage.file, off_t(bytes)) == 0)
        #expect(refusal(storage) == .storageDamaged)
    }

    @Test("A data file whose first two pages are garbage is damaged")
    func garbagePages() throws {
        var random = SeededGenerator(seed: runSeed)
        let storage = try filled()
        let file = open(storage.file, O_WRONLY)
        try #require(file >= 0)
        let garbage = random.bytes(8192)
        #expect(pwrite(file, garbage, garbage.count, 0) == garbage.count)
        close(file)
        #expect(refusal(storage) == .storageDamaged, "seed \(runSeed)")
    }

    @Test("A data file of garbage is damaged")
    func garbageFile() throws {
        var random = SeededGenerator(seed: runSeed)
        let scratch = ScratchDirectory()
        try Data(random.bytes(100_000)).write(to: URL(fileURLWithPath: scratch.path + "/data.mdb"))
        let configuration = RootSets.Configuration(directory: scratch.path)
        #expect(
            ServiceError.code { () throws(ServiceError) in _ = try RootSets(configuration) } == .storageDamaged,
            "seed \(runSeed)")
    }

    @Test("A directory that can't be made is a failure of the storage, which says when the folder above is missing")
    func noDirectory() {
        let scratch = ScratchDirectory()
        let configuration = RootSets.Configuration(directory: scratch.path + "/no/such")
        let failure = #expect(throws: ServiceError.self) { try RootSets(configuration) }
        #expect(failure?.code == .storageFailed)
        #expect(failure?.reason.hasSuffix("/no/such: the folder above it is missing, and is not made") == true)
    }

    @Test("A second opener in the same process finds the storage in use")
    func secondOpener() throws {
        let storage = try Storage()
        #expect(ServiceError.code { () throws(ServiceError) in _ = try storage.open() } == .storageInUse)
        // The first one was not disturbed, and the second can have it later.
        #expect(try storage.sets.refusal(of: .createCollaboration(try name("decks"), .challenge)) == nil)
        try storage.reopen()
        #expect(try storage.sets.statistics().collaborations == 1)
    }

    @Test(
        "An opener finds the storage in use while another process holds it",
        .enabled(if: LockHolder.isAvailable, "needs the command flock"))
    func otherProcess() throws {
        let storage = try Storage()
        try storage.reopen()
        storage.close()
        var holder: LockHolder?
        _ = becomesTrue {
            holder = LockHolder(file: storage.directory + "/owner.lock")
            return holder != nil
        }
        let held = try #require(holder)
        #expect(ServiceError.code { () throws(ServiceError) in _ = try storage.open() } == .storageInUse)
        held.letGo()
        #expect(refusal(storage) == nil)
    }
}
