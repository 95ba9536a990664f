import Core
import Testing

@testable import RootSets

@Suite("Room for additions")
struct StorageRoomTests {
    /// 1,000 pages, of which data take 300; 500 were used once; 100 are for removals.
    private func room(
        used: Int = 500, live: Int = 300, recent: Int = 0, capacity: Int = 1000, reserve: Int = 400
    ) -> StorageRoom {
        var trees = StorageTrees()
        trees.others = live - 2
        return StorageRoom(used: used, recent: recent, capacity: capacity, reserve: reserve, logMax: 0, trees: trees)
    }

    private func admits(_ room: StorageRoom, _ need: PageNeed, hasRun: Bool = false) throws -> Bool {
        try room.has(need) { _, _ in hasRun }
    }

    @Test("An addition takes free pages first, and makes the file grow up to the reserve")
    func growth() throws {
        // 200 pages are free, and 100 more are before the reserve.
        #expect(try admits(room(), PageNeed(copied: 300)))
        #expect(try !admits(room(live: 301), PageNeed(copied: 301)))
        // Those that the last commit has freed don't count yet.
        #expect(try !admits(room(recent: 1), PageNeed(copied: 300)))
        #expect(try admits(room(recent: 1), PageNeed(copied: 299)))
        #expect(try room(recent: 1).has(PageNeed(copied: 300), countingRecent: true) { _, _ in false })
        // The file is at the reserve already, or beyond it: there are only the free pages.
        for used in [600, 650] {
            #expect(try admits(room(used: used, live: 200), PageNeed(copied: 200)))
            #expect(try !admits(room(used: used, live: used), PageNeed(copied: 1)))
        }
    }

    @Test("An addition leaves as many pages as the reserve has, or as the largest removal needs")
    func kept() throws {
        #expect(try admits(room(used: 590, live: 490), PageNeed(fresh: 100)))
        #expect(try !admits(room(used: 590, live: 490), PageNeed(fresh: 111)))
        var large = room(used: 450, live: 50)
        large.trees.large = TreePages(leaves: 250, branches: 10, overflows: 0, depth: 2)
        // Copies of 260 pages, the list of them, the line of the log and some more.
        #expect(large.trees.largestRemoval == 260 + 1 + 256 + 64)
        #expect(try admits(large, PageNeed(fresh: 1000 - 310 - 581)))
        #expect(try !admits(large, PageNeed(fresh: 1000 - 310 - 580)))
        // The change log may still become larger.
        large.logMax = 9
        #expect(try admits(large, PageNeed(fresh: 1000 - 310 - 590)))
        #expect(try !admits(large, PageNeed(fresh: 1000 - 310 - 589)))
    }

    @Test("On a full disk the change log leaves most of what the reserve leaves")
    func logShare() {
        for (capacity, reserve, share) in [
            (1000, 400, 150), (1000, 900, 25), (1000, 950, 62), (1000, 1200, 62), (800, 1, 120),
        ] {
            var room = room(capacity: capacity, reserve: reserve)
            #expect(room.logShare == nil)
            room.isDiskFull = true
            #expect(room.logShare == share, "\(capacity) pages, \(reserve) in the reserve")
        }
    }

    @Test("The list of the pages that one commit frees takes a run of one in 512")
    func freeLists() {
        #expect([0, 509, 510, 131_072].map(StorageRoom.freeListPages(of:)) == [1, 1, 2, 257])
    }

    @Test("The pages of a commit are those that are copied, as many as there are, and those that come in addition")
    func pages() {
        #expect(room().pages(with: PageNeed(copied: 200, fresh: 3, run: 4)) == 207)
        #expect(room().pages(with: PageNeed(copied: 400, fresh: 3, run: 4)) == 307)
        var taken = room()
        taken.take(PageNeed(copied: 100, fresh: 10, run: 1))
        #expect(taken.pages(with: PageNeed(copied: 100, fresh: 10, run: 1)) == 222)
    }

    @Test("Neighbouring pages come from growth, or from a run among the free pages")
    func runs() throws {
        #expect(try admits(room(), PageNeed(run: 100)))
        #expect(try !admits(room(), PageNeed(run: 101)))
        #expect(try admits(room(), PageNeed(run: 101), hasRun: true))
        #expect(try admits(room(), PageNeed(copied: 99, run: 101), hasRun: true))
        #expect(try !admits(room(), PageNeed(copied: 100, run: 101), hasRun: true))
    }

    @Test("What was admitted before counts, and copies count at most once")
    func sums() throws {
        var room = room()
        room.take(PageNeed(copied: 290))
        #expect(try admits(room, PageNeed(copied: 20)))
        room.take(PageNeed(copied: 20))
        #expect(try !admits(room, PageNeed(fresh: 1)))
        room.giveBack(PageNeed(copied: 20))
        #expect(try admits(room, PageNeed(fresh: 1)))
    }
}
