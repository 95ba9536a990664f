import Core

/// The pages of the data file, and which of them the next commit may take. Additions leave room for removals.
///
/// The file grows up to `capacity`: up to the size limit and the reserve, or up to what the disk has. Additions make it
/// grow only as far as the reserve. Beyond, they take pages that are free inside of the file, and they leave as many
/// pages as the reserve has, or as the largest removal needs if that is more.
struct StorageRoom {
    /// Pages of the file up to the last one that was ever used.
    var used: Int
    /// Pages that became free by the last commit. The commit after the next one may take them.
    var recent: Int
    /// Pages that the file may have, those of the reserve among them.
    var capacity: Int
    /// Pages that additions leave for removals.
    var reserve: Int
    /// Pages that the change log may come to take. Removals make it larger, too.
    var logMax: Int
    /// Pages of the file for which the disk is known to have blocks.
    var blocks = 0
    /// Pages that became free while another process read an older snapshot, as a backup does, and goes on: no commit
    /// may take them before the end of that.
    private(set) var held = 0
    /// Who reads it.
    private(set) var holder: SnapshotReader?
    /// Whether `held` was counted.
    private(set) var knowsHeld = false
    /// Whether `capacity` is what the disk has.
    var isDiskFull = false
    var trees: StorageTrees

    /// How many neighbouring pages the commit takes that makes so many others free: LMDB lists them in one value, in
    /// eight bytes each, behind a header of 16 bytes and their number.
    static func freeListPages(of count: Int) -> Int { (count + 2) / 512 + 1 }

    /// Pages that are free inside of the file, now or after the next commit.
    private var free: Int { max(0, used - trees.all - held) }

    /// What the commit and the mutations that pass need.
    private var taken = PageNeed()

    init(used: Int, recent: Int, capacity: Int, reserve: Int, logMax: Int, trees: StorageTrees) {
        (self.used, self.recent, self.capacity, self.reserve) = (used, recent, capacity, reserve)
        (self.logMax, self.trees) = (logMax, trees)
    }

    /// Adds what a mutation that passes needs, or the commit itself.
    mutating func take(_ need: PageNeed) { taken = taken + need }

    /// Notes what others hold. The pages of the last commit are among those.
    mutating func hold(_ pages: HeldPages) {
        knowsHeld = true
        guard let holder = pages.holder else { return }
        (self.holder, held, recent) = (holder, pages.count, 0)
    }

    /// Whether the file would grow into the reserve if no page in it could be used again.
    func mayReachReserve(_ need: PageNeed) -> Bool {
        used + pages(with: need) > capacity - reserve
    }

    /// How many pages the commit writes at most when one more mutation with this need is in it.
    func pages(with need: PageNeed) -> Int {
        let sum = taken + need
        return min(sum.copied, trees.all) + sum.fresh + sum.run
    }

    mutating func giveBack(_ need: PageNeed) { taken = taken - need }

    /// This room before anything but `taken` was taken.
    func with(taken: PageNeed) -> StorageRoom {
        var room = self
        room.taken = taken
        return room
    }

    /// Whether there is room for an addition besides what was taken. `countingRecent`: count the pages that the last
    /// commit has freed, as if there was another commit in between. `hasRun(count, behind)` tells whether so many free
    /// pages are neighbours while `behind` others are taken first.
    func has(
        _ need: PageNeed, countingRecent: Bool = false,
        hasRun: (_ count: Int, _ behind: Int) throws(StorageFailure) -> Bool
    ) throws(StorageFailure) -> Bool {
        let sum = taken + need
        guard trees.all + sum.fresh + sum.run + kept <= capacity else { return false }
        let singles = min(sum.copied, trees.all) + sum.fresh
        let reusable = free - (countingRecent ? 0 : recent)
        let growthMax = max(0, capacity - reserve - used)
        let growth = max(0, singles - reusable)
        if growth + sum.run > growthMax {
            // The pages of the run have to be found among the free ones.
            guard growth <= growthMax else { return false }
            if sum.run > 0 {
                guard reusable >= singles + sum.run else { return false }
                if !countingRecent { return try hasRun(sum.run, singles) }
            }
        }
        return true
    }

    /// Whether there are so many pages for everything that was taken and a removal, which may take the reserve.
    func holds(_ need: PageNeed, countingRecent: Bool) -> Bool {
        let sum = taken + need
        let reusable = max(0, free - (countingRecent ? 0 : recent))
        return max(0, min(sum.copied, trees.all) + sum.fresh - reusable) + sum.run <= max(0, capacity - used)
    }

    /// For how many pages of the file the disk should have blocks, if one more mutation with this need is an addition.
    func wanted(for need: PageNeed) -> Int {
        let sum = taken + need
        let growth = max(0, min(sum.copied, trees.all) + sum.fresh - max(0, free - recent)) + sum.run
        return max(used + growth + reserve, trees.all + sum.fresh + sum.run + kept)
    }

    /// Pages that the change log has at most because the disk is full; `nil` while it is not. It is a quarter of what
    /// additions would have if everything was removed, but some pages also when that is nothing.
    var logShare: Int? { isDiskFull ? (canBecomeFree ? leftOfReserve : capacity / 4) / 4 : nil }

    /// Pages that additions leave for removals. The log may be a quarter larger than its share for a moment.
    private var kept: Int {
        let logMax = min(logMax, logShare.map { $0 / 4 * 5 } ?? logMax)
        return max(reserve, trees.largestRemoval + max(0, logMax - trees.log.all - trees.mutations.all))
    }

    /// Whether additions would find room if everything was removed.
    var canBecomeFree: Bool { leftOfReserve > 64 }

    /// Pages that an empty file has besides those that additions leave for removals.
    private var leftOfReserve: Int { capacity - max(reserve, StorageTrees().largestRemoval) }
}
