import Testing

@testable import RootSets

@Suite("Readers of old snapshots")
struct SnapshotReaderTests {
    @Test("A line of LMDB's list names process and commit; the heading and who reads nothing are none")
    func lines() {
        #expect(SnapshotReader(line: "      1234 7f0a12bc 567\n") == SnapshotReader(snapshot: 567, process: 1234))
        for line in [
            "    pid     thread     txnid\n", "      1234 7f0a12bc -\n", "(no active readers)\n", "", "1 2", "1 2 3 4",
        ] {
            #expect(SnapshotReader(line: line) == nil, "\(line)")
        }
    }

    @Test("Pages that were freed since the snapshot count once, and anew for another reader")
    func counting() {
        var held = HeldPages()
        let ofNobody = held.add(7, freedBy: 10, before: 0)
        #expect(!ofNobody)
        held.note(SnapshotReader(snapshot: 10, process: 1))
        // The newest commit is looked at first.
        for (commit, isCounted) in [(12, true), (11, true), (10, true), (9, false)] {
            let counts = held.add(5, freedBy: commit, before: 0)
            #expect(counts == isCounted, "\(commit)")
        }
        #expect(held.count == 15 && held.last == 12)
        held.note(SnapshotReader(snapshot: 10, process: 1))
        for (commit, isCounted) in [(14, true), (13, true), (12, false)] {
            let counts = held.add(5, freedBy: commit, before: 12)
            #expect(counts == isCounted, "\(commit)")
        }
        #expect(held.count == 25)
        held.note(SnapshotReader(snapshot: 14, process: 1))
        #expect(held.count == 0 && held.last == 0)
        held.note(nil)
        let ofNobodyAgain = held.add(5, freedBy: 15, before: 0)
        #expect(held.holder == nil && !ofNobodyAgain)
    }

    @Test("Held pages are not free, now or after the next commit, and what would not reach the reserve needs no count")
    func room() throws {
        func room() -> StorageRoom {
            var trees = StorageTrees()
            trees.others = 298
            return StorageRoom(used: 500, recent: 1, capacity: 1000, reserve: 400, logMax: 0, trees: trees)
        }
        var held = HeldPages()
        held.note(SnapshotReader(snapshot: 10, process: 1))
        _ = held.add(50, freedBy: 11, before: 0)
        for (copied, isThere) in [(250, true), (251, false)] {
            for countsRecent in [false, true] {
                var room = room()
                room.hold(held)
                let need = PageNeed(copied: copied)
                #expect(try room.has(need, countingRecent: countsRecent) { _, _ in false } == isThere, "\(copied)")
            }
        }
        #expect(!room().mayReachReserve(PageNeed(copied: 100)))
        #expect(room().mayReachReserve(PageNeed(copied: 101)))
        #expect(room().mayReachReserve(PageNeed(copied: 50, fresh: 26, run: 25)))
    }
}
