import Core
import TestSupport
import Testing

@testable import RootSets

@Suite("The log's lines about lack of room")
struct FullnessLogTests {
    /// A log whose time a test moves, in seconds.
    private func makeLog() -> (lines: Shared<[String]>, seconds: Shared<UInt64>, FullnessLog) {
        let (lines, seconds) = (Shared<[String]>([]), Shared<UInt64>(5))
        let log = FullnessLog(
            Log { line in lines.with { $0.append("\(line)") } }, clock: MonotonicClock { seconds.value * 1000 })
        return (lines, seconds, log)
    }

    @Test("There is a line when additions are refused and one when they find room, once a minute at most")
    func pairsOfLines() {
        let (logged, seconds, log) = makeLog()
        func refuse(_ pages: Int) {
            log.refused(Lack(need: PageNeed(copied: pages), isOfDisk: false, canBeRemoved: true))
        }
        #expect(log.need == nil)
        for pages in [7, 9, 8] { refuse(pages) }
        let remedy = "drop collaborations, remove most root hashes of large ones, or raise --storage-max"
        #expect(logged.value == ["WARNING: the storage is full, additions are refused: \(remedy)"])
        #expect(log.need == PageNeed(copied: 9))
        log.hasRoomAgain()
        #expect(logged.value.count == 2 && logged.value.last == "additions find room again")
        #expect(log.need == nil)
        // Within the minute nothing more is told, neither the beginning nor the end.
        seconds.with { $0 = 64 }
        refuse(1)
        log.hasRoomAgain()
        refuse(1)
        #expect(logged.value.count == 2)
        seconds.with { $0 = 65 }
        refuse(1)
        refuse(1)
        #expect(logged.value.count == 3)
        log.hasRoomAgain()
        log.hasRoomAgain()
        #expect(logged.value.count == 4)
    }

    @Test("A storage has no room while a usual addition is refused, as its writer finds out by itself")
    func room() throws {
        let scratch = ScratchDirectory()
        var configuration = RootSets.Configuration(
            directory: scratch.path + "/data", sizeLimitBytes: 6 << 20, reserveBytes: 1 << 20)
        configuration.logRetentionBytes = 1 << 20
        /// The writer's thread may hold the storage before a moment longer.
        func open() throws -> RootSets {
            var opened: RootSets?
            #expect(
                becomesTrue {
                    opened = try? RootSets(configuration)
                    return opened != nil
                })
            return try #require(opened)
        }
        var sets: RootSets! = try open()
        let (deck, pile) = (try name("deck"), try name("pile"))
        var random = SeededGenerator(seed: runSeed)
        func roots(_ count: Int) -> [Digest] { (0..<count).map { _ in random.digest() } }
        for name in [deck, pile] { _ = try sets.apply(Mutation(.createCollaboration(name, .challenge))) }
        // One that is too large for the storage says nothing about the others.
        #expect(sets.refusal(of: .addRoots(deck, roots(Limits.rootsPerRequestMax))) == .storageFull)
        #expect(!sets.lacksRoom)
        while sets.refusal(of: .addRoots(pile, roots(200))) == nil {}
        while sets.refusal(of: .addRoots(pile, roots(1))) == nil {}
        #expect(sets.lacksRoom)
        // The next process looks before anybody adds something.
        #expect(sets.refusal(of: .addRoots(pile, roots(200))) == .storageFull)
        sets.close()
        sets = nil
        sets = try open()
        #expect(!sets.lacksRoom)
        sets.lookForRoom()
        #expect(becomesTrue { sets.lacksRoom })
        // Nobody has to add something for it to be noticed that there is room again.
        _ = try sets.apply(Mutation(.dropCollaboration(pile)))
        #expect(
            becomesTrue {
                sets.lookForRoom()
                return !sets.lacksRoom
            })
        #expect(sets.refusal(of: .addRoots(deck, roots(200))) == nil)
        sets.close()
    }

    @Test("What is refused alone for its size is said to be, and other additions are not said to be refused")
    func large() {
        let (logged, seconds, log) = makeLog()
        var lack = Lack(need: PageNeed(copied: 9), isOfDisk: false, canBeRemoved: true)
        lack.isGeneral = false
        log.refused(lack)
        #expect(!log.isFull && log.need == lack.need)
        let what = "the storage has no room for an addition of this size"
        #expect(logged.value.first?.hasPrefix("WARNING: \(what), large additions are refused: add less") == true)
        #expect(lack.error.reason.hasPrefix("\(what): add less at a time,"))
        // That all are refused is told, too, when the minute is over.
        seconds.with { $0 += 60 }
        lack.isGeneral = true
        log.refused(lack)
        log.refused(lack)
        #expect(log.isFull && logged.value.count == 2 && logged.value.last?.contains("full, additions are") == true)
    }

    @Test("There is a line a minute about removals that are refused")
    func removals() {
        let (logged, seconds, log) = makeLog()
        for time in [5, 64, 65, 66] as [UInt64] {
            seconds.with { $0 = time }
            log.refusedRemoval(ServiceError(.storageFull, "end process 7"))
        }
        let line = "CRITICAL: a removal or a replacement was refused: end process 7"
        #expect(logged.value == [line, line])
    }
}
