import Core
import TestSupport
import Testing

@testable import RootSets

@Suite("The log's lines about lack of room")
struct FullnessLogTests {
    @Test("There is a line when additions are refused and one when they find room, once a minute at most")
    func pairsOfLines() {
        let (logged, seconds) = (Shared<[String]>([]), Shared<UInt64>(5))
        let log = FullnessLog(
            Log { line in logged.with { $0.append("\(line)") } },
            clock: MonotonicClock { seconds.value * 1000 })
        func refuse(_ pages: Int) {
            log.refused(Lack(need: PageNeed(copied: pages), isOfDisk: false, canBeRemoved: true))
        }
        #expect(log.need == nil)
        for pages in [7, 9, 8] { refuse(pages) }
        let remedy = "remove many root hashes or collaborations, or raise --storage-max"
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

    @Test("There is a line a minute about removals that are refused")
    func removals() {
        let (logged, seconds) = (Shared<[String]>([]), Shared<UInt64>(5))
        let log = FullnessLog(
            Log { line in logged.with { $0.append("\(line)") } },
            clock: MonotonicClock { seconds.value * 1000 })
        for time in [5, 64, 65, 66] as [UInt64] {
            seconds.with { $0 = time }
            log.refusedRemoval(ServiceError(.storageFull, "end process 7"))
        }
        let line = "CRITICAL: a removal or a replacement was refused: end process 7"
        #expect(logged.value == [line, line])
    }
}
