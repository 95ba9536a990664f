import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// A storage that is in use, whose file is damaged under it.
private final class UsedStorage {
    let scratch = ScratchDirectory()
    let sets: RootSets
    /// More root hashes than fit into one bucket, ascending.
    let crowd: [Digest]
    let few: [Digest]
    let record = [UInt8](repeating: 0xa5, count: 100)
    private let crowdName: CollaborationIdentifier
    private let fewName: CollaborationIdentifier
    private static let page = 4096

    init(checkedAgain interval: CheckInterval) throws {
        var random = SeededGenerator(seed: runSeed)
        crowd = (0..<2000).map { _ in random.digest() }.sorted()
        // In another order than the set has.
        few = (0..<4).map { _ in random.digest() }.sorted().reversed()
        (crowdName, fewName) = (try name("crowd"), try name("few"))
        var surroundings = StorageSurroundings()
        surroundings.checkInterval = interval
        surroundings.directoryLookupsMin = 1
        sets = try RootSets(
            RootSets.Configuration(
                directory: scratch.path + "/data", sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20,
                logRetentionBytes: 1 << 18),
            surroundings: surroundings)
        for (name, roots) in [(crowdName, crowd), (fewName, few)] {
            try sets.apply(Mutation(.createCollaboration(name, .challenge)))
            try sets.apply(Mutation(.addRoots(name, roots)))
        }
        var edit = Edit()
        edit.records = [RecordEdit([1], value: record)]
        try sets.apply(Mutation(.edit(edit)))
        #expect(becomesTrue { self.sets.health.isChecked })
        // Until directories answer.
        for _ in 0..<10 {
            #expect(answers() == .init(absent: 0, refused: 0))
            usleep(1000)
        }
    }

    deinit { sets.close() }

    struct Answers: Equatable {
        /// Members that are told to be none.
        var absent: Int
        var refused: Int
    }

    /// What is answered about members of both sets, one at a time.
    func answers() -> Answers {
        var answers = Answers(absent: 0, refused: 0)
        for (name, roots) in [(crowdName, crowd), (fewName, few)] {
            for root in roots {
                switch isMember(root, name) {
                case true?: break
                case false?: answers.absent += 1
                case nil: answers.refused += 1
                }
            }
        }
        return answers
    }

    /// Whether the first one of the few is told to be a member; `nil` when it can't be told.
    func isFirstMember() -> Bool? { isMember(few[0], fewName) }

    /// Removes the first one of the few. Then puts the older bucket into the page that lacks it, as a disk does that
    /// has lost the write.
    func removeAndLoseTheWrite() throws {
        func bytes(_ roots: some Sequence<Digest>) -> [UInt8] { roots.sorted().flatMap(\.bytes) }
        let older = try self.bytes()
        let old = try #require(UsedStorage.pages(with: bytes(few), in: older).last)
        try sets.apply(Mutation(.removeRoots(fewName, [few[0]])))
        #expect(isFirstMember() == false)
        try damage { contents in
            for page in UsedStorage.pages(with: bytes(few.dropFirst()), in: contents) {
                let range = UsedStorage.range(page)
                guard Data(contents[range]).range(of: Data(few[0].bytes)) == nil else { continue }
                // A page begins with its number.
                contents.replaceSubrange(range.dropFirst(8), with: older[UsedStorage.range(old).dropFirst(8)])
            }
        }
    }

    private func isMember(_ root: Digest, _ name: CollaborationIdentifier) -> Bool? {
        try? sets.read { snapshot throws(ServiceError) in
            try name.utf8.withRawBytes { bytes throws(ServiceError) in
                guard let members = try MemberLookup(bytes, lookups: 1000, in: snapshot) else { return false }
                return try members.contains(root, in: snapshot)
            }
        }
    }

    /// The value of a record; `nil` when it can't be told.
    func readRecord() -> [UInt8]? {
        try? sets.read { snapshot throws(ServiceError) in try snapshot.record([1])?.value }
    }

    /// Swaps pages with members of the crowd.
    func swapPages() throws {
        try damage { bytes in
            let pairs = zip(
                UsedStorage.pages(with: crowd[300].bytes, in: bytes),
                UsedStorage.pages(with: crowd[1700].bytes, in: bytes))
            for (one, other) in pairs {
                let kept = Array(bytes[UsedStorage.range(one)])
                bytes.replaceSubrange(UsedStorage.range(one), with: Array(bytes[UsedStorage.range(other)]))
                bytes.replaceSubrange(UsedStorage.range(other), with: kept)
            }
        }
    }

    /// Flips a bit of some bytes wherever they are in the file.
    func flipBit(of wanted: [UInt8]) throws {
        try damage { bytes in
            for page in UsedStorage.pages(with: wanted, in: bytes) {
                let range = UsedStorage.range(page)
                guard let place = Data(bytes[range]).range(of: Data(wanted)) else { continue }
                bytes[range.lowerBound + place.lowerBound + 20] ^= 4
            }
        }
    }

    private var path: String { scratch.path + "/data/data.mdb" }

    private func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

    /// Writes over the file as a failing disk would: nobody who has it open is told.
    private func damage(_ body: (inout [UInt8]) -> Void) throws {
        let before = try bytes()
        var bytes = before
        body(&bytes)
        let file = open(path, O_WRONLY)
        try #require(file >= 0)
        defer { close(file) }
        for start in stride(from: 0, to: bytes.count, by: UsedStorage.page) {
            let range = start..<min(start + UsedStorage.page, bytes.count)
            guard bytes[range] != before[range] else { continue }
            #expect(
                bytes[range].withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(start)) } == range.count)
        }
    }

    /// The pages that have these bytes, also those of older versions.
    private static func pages(with wanted: [UInt8], in bytes: [UInt8]) -> [Int] {
        stride(from: 0, to: bytes.count, by: page).filter { start in
            Data(bytes[start..<min(start + page, bytes.count)]).range(of: Data(wanted)) != nil
        }.map { $0 / page }
    }

    private static func range(_ page: Int) -> Range<Int> { page * Self.page..<(page + 1) * Self.page }
}

@Suite("Checks of a storage in use")
struct LaterChecksTests {
    private let soon = CheckInterval(always: .milliseconds(50))
    private let late = CheckInterval(always: .seconds(3600))

    @Test("Changes of every kind while a storage is checked again and again are no damage")
    func changes() throws {
        let storage = try UsedStorage(checkedAgain: CheckInterval(always: .milliseconds(1)))
        var random = SeededGenerator(seed: runSeed &+ 1)
        let before = storage.sets.checkCount
        var round = 0
        while round < 100 || storage.sets.checkCount < before + 10, round < 10_000 {
            round += 1
            let other = try name("other \(round % 3)")
            let roots = (0..<(round % 10 == 0 ? 1000 : 40)).map { _ in random.digest() }
            try storage.sets.apply(Mutation(.createCollaboration(other, .challenge)))
            try storage.sets.apply(Mutation(identifier: MutationIdentifier(UInt128(round)), .addRoots(other, roots)))
            try storage.sets.apply(Mutation(.removeRoots(other, Array(roots.prefix(20)))))
            var edit = Edit()
            edit.records = [
                RecordEdit([2, UInt8(round % 50)], value: round % 3 == 0 ? nil : random.bytes(round % 3000))
            ]
            try storage.sets.apply(Mutation(.edit(edit)))
            try storage.sets.apply(Mutation(.dropCollaboration(other)))
        }
        #expect(storage.sets.checkCount >= before + 10)
        #expect(try storage.sets.statistics().firstSequence > 1, "the log was not shortened")
        #expect(storage.sets.health.level == .intact, "\(String(describing: storage.sets.health.finding))")
        #expect(storage.answers() == .init(absent: 0, refused: 0))
    }

    @Test("A bit that changes in a bucket that is in use is found: who is in it gets an error, and nobody else does")
    func bit() throws {
        let storage = try UsedStorage(checkedAgain: soon)
        try storage.flipBit(of: storage.crowd[1000].bytes)
        try #require(becomesTrue { storage.sets.health.level == .damaged })
        let answers = storage.answers()
        #expect(answers.absent == 0)
        #expect(1...56 ~= answers.refused, "\(answers)")
        #expect(storage.sets.health.unreadiness?.code == .storageDamaged)
    }

    @Test("Pages that change places under a storage in use are found, and no member is told to be none")
    func swappedPages() throws {
        let storage = try UsedStorage(checkedAgain: soon)
        try storage.swapPages()
        try #require(becomesTrue { storage.sets.health.level == .damaged })
        let answers = storage.answers()
        #expect(answers.absent == 0)
        #expect(answers.refused > 0)
    }

    @Test("A member who was removed comes back with a lost write until the next check, and then gets an error")
    func lostWrite() throws {
        let storage = try UsedStorage(checkedAgain: late)
        try storage.removeAndLoseTheWrite()
        #expect(storage.isFirstMember() == true, "no check tells of it yet")
        // Damage of another kind makes everything be checked.
        try storage.flipBit(of: storage.record)
        #expect(storage.readRecord() == nil)
        #expect(becomesTrue { storage.isFirstMember() == nil })
        #expect(storage.sets.health.unreadiness?.code == .storageDamaged)
    }

    @Test("A damaged storage is checked as often as an intact one: what is damaged later is found, too")
    func afterDamage() throws {
        var interval = soon
        interval.most = .seconds(3600)
        let storage = try UsedStorage(checkedAgain: interval)
        try storage.flipBit(of: storage.record)
        try #require(becomesTrue { storage.sets.health.level == .damaged })
        let count = storage.sets.checkCount
        try #require(becomesTrue { storage.sets.checkCount > count + 1 })
        try storage.removeAndLoseTheWrite()
        #expect(becomesTrue { storage.isFirstMember() == nil })
    }

    @Test("Checks follow each other at twenty times their length, a minute at least and an hour at most")
    func intervals() throws {
        let interval = StorageSurroundings().checkInterval
        #expect(interval.pause(after: .milliseconds(1)) == .seconds(60))
        #expect(interval.pause(after: .seconds(3)) == .seconds(60))
        #expect(interval.pause(after: .seconds(10)) == .seconds(200))
        #expect(interval.pause(after: .seconds(1000)) == .seconds(3600))
        // A storage keeps to it.
        var rare = CheckInterval(always: .milliseconds(1))
        (rare.checks, rare.most) = (1_000_000, .seconds(3600))
        for (interval, counts) in [(rare, 0...1), (CheckInterval(always: .milliseconds(1)), 3...1_000_000)] {
            let storage = try UsedStorage(checkedAgain: interval)
            let before = storage.sets.checkCount
            usleep(300_000)
            #expect(counts.contains(storage.sets.checkCount - before), "\(counts)")
        }
    }

    @Test("Damage that a request meets makes everything be checked at once, whatever the interval")
    func hurry() throws {
        let storage = try UsedStorage(checkedAgain: late)
        #expect(storage.readRecord() == storage.record)
        try storage.swapPages()
        #expect(storage.answers().absent > 0, "no check tells of it yet")
        try storage.flipBit(of: storage.record)
        #expect(storage.readRecord() == nil)
        #expect(becomesTrue { storage.answers().absent == 0 })
        #expect(storage.answers().refused > 0)
    }

    @Test("Damage that a request meets while everything is checked makes it be checked once more")
    func hurryBehindWalk() throws {
        let scratch = ScratchDirectory()
        var surroundings = StorageSurroundings()
        surroundings.checkInterval = late
        let configuration = RootSets.Configuration(directory: scratch.path + "/data", reserveBytes: 1 << 20)
        do {
            let sets = try RootSets(configuration)
            defer { sets.close() }
            var random = SeededGenerator(seed: runSeed)
            try sets.apply(Mutation(.createCollaboration(try name("crowd"), .challenge)))
            for _ in 0..<4 {
                let roots = (0..<20_000).map { _ in random.digest() }
                try sets.apply(Mutation(.addRoots(try name("crowd"), roots)))
            }
        }
        for _ in 0..<50 {
            let sets = try RootSets(configuration, surroundings: surroundings)
            defer { sets.close() }
            while !sets.isBeingChecked, !sets.health.isChecked {}
            sets.health.report(.damaged, "a request has met damage")
            guard !sets.health.isChecked else { continue }
            #expect(becomesTrue { sets.checkCount == 2 })
            return
        }
        Issue.record("the check of the start was always over")
    }

    @Test("A storage that is closed while it is checked again ends the check")
    func closing() throws {
        for _ in 0..<5 {
            let storage = try UsedStorage(checkedAgain: CheckInterval(always: .milliseconds(1)))
            usleep(UInt32.random(in: 0..<10_000))
            storage.sets.close()
            #expect(storage.sets.health.level == .intact)
        }
    }
}
