/// Neighbouring pages that are kept for the list of the pages that a commit frees.
///
/// LMDB writes this list as one value, of eight bytes for each page. So a commit that frees more than 509 pages needs
/// neighbouring pages for it, and the free pages of a full storage may be scattered. Two values in `meta` keep such
/// pages. What they hold means nothing. They have no seal, the totals do not count them, and backups do not have them.
///
/// A removal that finds no room otherwise gets them:
/// 1. After an empty commit, the next one gives up one of the values, and another empty commit follows: what a commit
///    frees can be used by the commit after the next.
/// 2. The commit of the removal takes these pages before all others, so that they stay together, and gives up the other
///    value, too. Long values that it writes get some of them (`lend`). At its end it gives the pages back, and takes
///    those again that the list can't need. LMDB finds the rest for its list.
/// 3. After an empty commit, the next one takes the pages of the other value. It finds them in the list of the removal,
///    so it frees the pages of that list, and gives up with them what 2 has taken.
/// 4. After another empty commit these are taken again.
///
/// If the process ends on the way, later commits take what is there.
struct ListReserve {
    /// What keeps pages.
    enum Part: String, CaseIterable {
        case first = "list reserve"
        case second = "second list reserve"
        /// While a removal is applied.
        case held = "held list reserve"
        /// What the list of a removal can't need, until the reserve is taken again.
        case rest = "rest of a list reserve"

        var key: [UInt8] { Array(rawValue.utf8) }
    }

    /// The key of the number of a transaction, which waits until nobody reads an older snapshot. Backups and checks of
    /// such ones give up, in other processes, too. Whoever begins later is not meant, also when the writer has ended
    /// meanwhile.
    static let awaitedKey = Array("awaited readers".utf8)

    /// What a transaction holds.
    struct Held {
        let pages: Int
        /// Pages that are not lent.
        let kept: Int
    }

    /// Those that are always kept.
    static let lasting = [Part.first, .second]
    /// More would not be freed by a commit whose list has one page.
    static let pagesMax = 400
    /// When no room was found for a value, it is tried again after so many commits: reading the list of free pages may
    /// take long.
    static let commitsBetween: UInt64 = 16
    /// The most free pages that are looked at for it.
    static let searchedMax = 1 << 20
    /// How long the writer waits for readers before a removal that needs the reserve, and behind it.
    /// It waits several times, and all peers wait with it.
    static let waitMax = Duration.milliseconds(200)
    static let waitBehindMax = Duration.milliseconds(50)
    /// Pages that LMDB copies before it takes those of a value.
    static let pagesBefore = 4
    /// Bytes of the header of LMDB's first page of a value.
    private static let headerBytes = 16

    private let transaction: WriteTransaction
    private let meta: Database
    private let pageBytes: Int

    init(_ transaction: WriteTransaction, _ environment: StorageEnvironment) {
        (self.transaction, meta, pageBytes) = (transaction, environment.meta, environment.pageBytes)
    }

    /// How many pages a value should have at least. `all`: pages that hold data.
    ///
    /// A list has a 512th of them at most. LMDB looks for neighbours in 60 of its lists for each page that it wants
    /// (`FreeRuns`), so it finds more pages among more lists.
    static func needed(all: Int) -> Int {
        // One page lists what a commit frees.
        all > 500 ? min(pagesMax, all / 256 + 2) : 0
    }

    /// How many pages a value gets, so that they are enough for long. `used`: pages of the file so far, `capacity`:
    /// pages that it may come to have.
    static func wanted(used: Int, capacity: Int) -> Int {
        var soon = 1024
        while soon < 2 * used { soon *= 2 }
        return min(pagesMax, min(soon, capacity) / 192 + 4)
    }

    /// How many pages a value keeps when others are lent: enough for a list of all pages that hold data, and for some
    /// that are lost before it is taken again, but at most half of what a value may have.
    static func kept(_ trees: StorageTrees) -> Int { min(listed(trees.all, trees) + 2 * pagesBefore, pagesMax / 2) }

    /// The most pages that a list of so many pages takes, with the single ones that LMDB takes before: it copies the
    /// leaves of the lists that it has used up.
    private static func listed(_ count: Int, _ trees: StorageTrees) -> Int {
        StorageRoom.freeListPages(of: count) + trees.lists.leaves + trees.lists.branches + pagesBefore
    }

    /// Whether a key of `meta` is one of these.
    static func holds(_ key: UnsafeRawBufferPointer) -> Bool {
        Part.allCases.contains { key.elementsEqual($0.rawValue.utf8) } || key.elementsEqual(awaitedKey)
    }

    /// How many pages a value keeps.
    func pages(_ part: Part) throws(StorageFailure) -> Int {
        guard let value = try transaction.bytes(meta, part.key) else { return 0 }
        return ListReserve.pages(ofBytes: value.count, pageBytes)
    }

    /// The pages of a value of so many bytes.
    static func pages(ofBytes count: Int, _ pageBytes: Int) -> Int { (count + headerBytes) / pageBytes }

    /// The pages that a value of so many bytes takes outside of a leaf.
    private static func pages(forBytes count: Int, _ pageBytes: Int) -> Int {
        pages(ofBytes: count + pageBytes - 1, pageBytes)
    }

    /// Asks for the end of all readings of older snapshots.
    func awaitReaders() throws(StorageFailure) {
        let number = withUnsafeBytes(of: UInt64(transaction.number).littleEndian) { Array($0) }
        try transaction.putBytes(meta, ListReserve.awaitedKey, number)
    }

    /// Takes so many neighbouring pages.
    func take(_ pages: Int, for part: Part) throws(StorageFailure) {
        let bytes = [UInt8](repeating: 0, count: pages * pageBytes - ListReserve.headerBytes)
        try transaction.putBytes(meta, part.key, bytes)
    }

    /// Takes pages that were given up for the list of this transaction, and gives up what else there is. `trees`: as
    /// of the last commit.
    func hold(_ pages: Int, _ trees: StorageTrees) throws(StorageFailure) {
        try take(pages, for: .held)
        for part in ListReserve.lasting { try giveUp(part) }
        transaction.held = Held(pages: pages, kept: ListReserve.kept(trees))
    }

    /// Whether a value of so many bytes may have some of the pages that are held: it needs neighbouring ones, and not
    /// so many that too few are left.
    func lends(toValueOf count: Int) -> Bool {
        let pages = ListReserve.pages(forBytes: count, pageBytes)
        return pages > 1 && transaction.held.map { $0.pages - pages >= $0.kept } == true
    }

    /// Calls `body`, which writes a value of so many bytes, and gives it some of the pages that are held. `body` may
    /// take no other page before those of the value, or LMDB takes it from among them.
    func lend(toValueOf count: Int, _ body: () throws(StorageFailure) -> Void) throws(StorageFailure) {
        guard let held = transaction.held else { return try body() }
        try giveUp(.held)
        transaction.held = nil
        try body()
        let left = held.pages - ListReserve.pages(forBytes: count, pageBytes)
        try take(left, for: .held)
        transaction.held = Held(pages: left, kept: held.kept)
    }

    /// Gives the pages that are held back for the list, but those that it can't need. `freed`: how many pages the list
    /// has at most. Nothing else may be changed after it, or LMDB takes single pages from among them.
    func release(listOf freed: Int, _ trees: StorageTrees) throws(StorageFailure) {
        guard let held = transaction.held else { return }
        transaction.held = nil
        try giveUp(.held)
        let rest = held.pages - ListReserve.listed(freed, trees)
        if rest > 0 { try take(rest, for: .rest) }
    }

    /// Gives up a value. If this transaction has taken its pages, they can be used at once. Returns how many it had.
    @discardableResult
    func giveUp(_ part: Part) throws(StorageFailure) -> Int {
        let pages = try pages(part)
        if pages > 0 { try transaction.deleteBytes(meta, part.key) }
        return pages
    }
}
