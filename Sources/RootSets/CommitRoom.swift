import Core

/// The room for the mutations of one commit. Judges them in order, each before it is applied.
struct CommitRoom {
    enum Verdict {
        /// The mutation is a removal, or an addition for which there is room.
        case passes
        /// The mutation is an addition for which there is no room.
        case lacks(Lack)
        /// There is no room for the mutation besides those before it, in the file or in memory. There may be some in
        /// the next commit.
        case waits
    }

    private let environment: StorageEnvironment
    /// Bytes of the pages that a commit of more than one mutation writes at most.
    private let bytesMax: Int
    private var room: StorageRoom
    /// The need of the commit itself, and that of the mutation that was judged last.
    private let ofCommit: PageNeed
    private var last = PageNeed()
    /// Counted when an addition needs them: reading the whole list of free pages takes long.
    private var runs: FreeRuns?

    init(
        _ environment: StorageEnvironment, reserveBytes: Int, logBytes: Int, bytesMax: Int = Limits.commitPageBytesMax
    ) throws(StorageFailure) {
        self.environment = environment
        self.bytesMax = bytesMax
        room = try environment.room(reserveBytes: reserveBytes, logBytes: logBytes)
        ofCommit = PageNeed.ofCommit(room.trees, mutations: 1)
        room.take(ofCommit)
    }

    var isDiskFull: Bool { room.isDiskFull }

    /// The bytes that the change log has at most because the disk is full; `nil` while the disk has room.
    var logShare: Int? { room.logShare.map { $0 * environment.pageBytes } }

    /// Judges the next mutation. `needsSpace`: whether it is an addition. `isAlone`: whether the commit has changed
    /// nothing so far. Then no mutation waits.
    mutating func judge(_ change: Change, needsSpace: Bool, isAlone: Bool) throws(StorageFailure) -> Verdict {
        last = PageNeed()
        let need = need(of: change)
        try environment.prepare(&room, for: need)
        // LMDB holds the pages in memory until they are committed.
        if !isAlone, room.pages(with: need) * environment.pageBytes > bytesMax { return .waits }
        if try fits(need, needsSpace) {
            take(need)
            return .passes
        }
        if !isAlone, try fitsAlone(need, needsSpace) { return .waits }
        if needsSpace {
            var lack = Lack(
                need: need, isOfDisk: room.isDiskFull, canBeRemoved: room.canBecomeFree, holder: room.holder)
            lack.isGeneral = try !has(lessOf(need, usualNeed))
            return .lacks(lack)
        }
        take(need)
        return .passes
    }

    /// Gives back what the mutation that was judged last would have taken: it has changed nothing.
    mutating func giveBack() {
        room.giveBack(last)
        last = PageNeed()
    }

    /// Whether there is room for an addition with this need, for which the room is ready, or for more.
    mutating func has(_ need: PageNeed) throws(StorageFailure) -> Bool {
        try environment.countHeld(need, in: &room)
        let room = room
        return try room.has(need) { count, behind throws(StorageFailure) in try hasRun(count, behind) }
    }

    /// Whether there would be room for an addition with this need, which nobody makes now. What is judged later is
    /// judged as before.
    mutating func wouldHave(_ need: PageNeed) throws(StorageFailure) -> Bool {
        var asked = self
        defer { runs = asked.runs }
        try environment.prepareToAsk(&asked.room, for: need)
        return try asked.has(need)
    }

    /// Whether a usual addition has room, or one with that need if it is smaller. `nil`: it may have some when the
    /// pages that the last commit has freed can be used.
    mutating func hasUsualRoom(_ need: PageNeed?) throws(StorageFailure) -> Bool? {
        try environment.prepareToAsk(&room, for: need.map { lessOf($0, usualNeed) } ?? usualNeed)
        // What is usual becomes less when the disk has less.
        let least = need.map { lessOf($0, usualNeed) } ?? usualNeed
        if try has(least) { return true }
        guard room.recent > 0 else { return false }
        return try fitsAlone(least, true) ? nil : false
    }

    /// The need of a usual addition, by which a storage counts as full. In a small storage that has fewer root hashes.
    private var usualNeed: PageNeed {
        let count = max(1, min(Limits.usualAdditionRoots, room.capacity / Limits.pagesForUsualRoot))
        return trimming(PageNeed.ofAddition(count, room.trees))
    }

    private func lessOf(_ one: PageNeed, _ other: PageNeed) -> PageNeed { one.sum < other.sum ? one : other }

    /// Counts a mutation that is applied whatever room there is.
    mutating func count(_ change: Change) throws(StorageFailure) {
        let need = need(of: change)
        try environment.prepare(&room, for: need)
        take(need)
    }

    /// Whether any addition has room besides what was counted.
    mutating func hasRoomForAdditions() throws(StorageFailure) -> Bool { try has(PageNeed(fresh: 1)) }

    /// The pages of the trees as of the last commit.
    var trees: StorageTrees { room.trees }

    /// How many pages the transaction makes free at most: by what became shorter, and by what it has copied for
    /// everything that was counted.
    func freed(by transaction: WriteTransaction) throws(StorageFailure) -> Int {
        let trees = try environment.trees(in: transaction)
        // The list of free pages is copied, too.
        return max(0, room.trees.all - trees.all) + room.pages(with: PageNeed()) + 2 * trees.lists.all
    }

    /// Whether a value of the list reserve is missing or too small, or the rest of one is left. `present`: the pages of
    /// each value.
    func lacksListReserve(_ present: [ListReserve.Part: Int]) -> Bool {
        let needed = ListReserve.needed(all: room.trees.all)
        return present[.rest] != nil || ListReserve.lasting.contains { present[$0, default: 0] < needed }
    }

    /// Whether each value of the list reserve is enough for a list of everything, or as large as it should be.
    func hasEnoughOfListReserve(_ present: [ListReserve.Part: Int]) -> Bool {
        let enough = min(ListReserve.needed(all: room.trees.all), ListReserve.kept(room.trees))
        return ListReserve.lasting.allSatisfy { present[$0, default: 0] >= enough }
    }

    /// How many pages a value of the list reserve gets that has `present` now; 0 when there is no room for them, `nil`
    /// when it has enough. The commit must take them before all others. `isGivenUp`: whether they were given up for a
    /// removal. Then it does not matter whether there is room for additions, and a value gets what there is: others may
    /// have taken the rest.
    mutating func listReserve(insteadOf present: Int, isGivenUp: Bool) throws(StorageFailure) -> Int? {
        let needed = ListReserve.needed(all: room.trees.all)
        guard present < needed else { return nil }
        let wanted = ListReserve.wanted(used: room.used, capacity: room.capacity)
        try environment.prepare(&room, for: PageNeed(run: wanted))
        if try has(wanted, isFree: false) { return wanted }
        let hasRoom = try has(needed, isFree: true)
        guard isGivenUp || hasRoom else { return 0 }
        let longest = min(wanted, try environment.longestFreeRun(lists: needed * FreeRuns.listsPerPage))
        guard longest >= (isGivenUp ? present + 1 : needed) else { return 0 }
        let hasMore = try has(longest, isFree: true)
        return isGivenUp || hasMore ? longest : needed
    }

    /// Whether there is room for so many neighbouring pages. `isFree`: whether the file has so many that are free.
    private func has(_ count: Int, isFree: Bool) throws(StorageFailure) -> Bool {
        try room.has(PageNeed(run: count)) { _, _ throws(StorageFailure) in isFree }
    }

    /// Counts neighbouring pages that the commit takes before all others.
    mutating func countRun(_ count: Int) throws(StorageFailure) {
        let need = PageNeed(run: count)
        try environment.prepare(&room, for: need)
        room.take(need)
    }

    /// Whether the first mutation finds room only when the pages that the last commit has freed can be used.
    mutating func fitsOnlyAfterEmptyCommit(_ change: Change, needsSpace: Bool) throws(StorageFailure) -> Bool {
        guard room.recent > 0 else { return false }
        let need = need(of: change)
        try environment.prepare(&room, for: need)
        if try fits(need, needsSpace) { return false }
        return try fitsAlone(need, needsSpace)
    }

    /// Whether there is no room for the first mutation, an addition, neither now nor alone in the next commit.
    mutating func lacksRoom(for change: Change) throws(StorageFailure) -> Bool {
        let need = need(of: change)
        try environment.prepare(&room, for: need)
        if try fits(need, true) { return false }
        return try !fitsAlone(need, true)
    }

    /// Whether there are pages enough for a removal alone, neighbours or not.
    mutating func hasPages(for change: Change) throws(StorageFailure) -> Bool {
        var need = need(of: change)
        try environment.prepare(&room, for: need)
        (need.fresh, need.run) = (need.fresh + need.run, 0)
        return room.holds(need, countingRecent: true)
    }

    private mutating func take(_ need: PageNeed) {
        last = need
        room.take(need)
    }

    private func need(of change: Change) -> PageNeed { trimming(PageNeed(change, room.trees)) }

    /// A mutation also makes the change log shorter: by records that may be on as many other pages.
    private func trimming(_ need: PageNeed) -> PageNeed {
        need + PageNeed(copied: room.trees.mutations.copied(by: Applier.trimmedRecordsPerMutation))
    }

    private mutating func fits(_ need: PageNeed, _ needsSpace: Bool) throws(StorageFailure) -> Bool {
        guard needsSpace else { return room.holds(need, countingRecent: false) }
        return try has(need)
    }

    /// Whether the mutation may find room alone in a later commit.
    private func fitsAlone(_ need: PageNeed, _ needsSpace: Bool) throws(StorageFailure) -> Bool {
        let alone = room.with(taken: ofCommit)
        guard needsSpace else { return alone.holds(need, countingRecent: true) }
        return try alone.has(need, countingRecent: true) { _, _ throws(StorageFailure) in true }
    }

    private mutating func hasRun(_ count: Int, _ behind: Int) throws(StorageFailure) -> Bool {
        if let runs { return runs.has(count, behind: behind) }
        let found = try environment.freeRuns()
        runs = found
        return found.has(count, behind: behind)
    }
}
