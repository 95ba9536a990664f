import Core
import Foundation

/// Walks all pages of a data file of LMDB, and finds what would make LMDB fail an assertion, read a wild address or
/// loop for ever: LMDB 0.9 checks nothing of it. What records mean is not looked at.
///
/// For each tree: page numbers, flags and free space of the headers; the nodes of a page within it, and tiling it;
/// keys in order, and between those of the branch above; children within the file, each used once, all leaves at the
/// depth that the tree says; runs of overflow pages within the file; and the counts of pages and entries. The list of
/// free pages is in order, and no page of it is in use. Trees may be put off: those that were checked can be read, and
/// when all were checked the file can be written.
///
/// It is total: whatever the bytes are, it reads nothing outside of them, does not trap, and looks at each page at most
/// once.
struct PageCheck {
    /// What is wrong, and on which page.
    struct Finding: Sendable, CustomStringConvertible {
        let page: UInt64
        let what: String

        var description: String { "page \(page): \(what)" }
    }

    /// The most pages between the root and a leaf, as in LMDB.
    static let depthMax = 32
    /// Findings that are kept. The others are counted.
    private static let findingsMax = 64
    private static let headerBytes = 16
    private static let nodeBytes = 8
    private static let keyBytesMax = 511

    private enum Flag {
        static let branch: UInt16 = 1
        static let leaf: UInt16 = 2
        static let overflow: UInt16 = 4
        /// Of nodes: the value is in overflow pages; the value is the place of a tree.
        static let bigValue: UInt16 = 1
        static let tree: UInt16 = 2
    }

    private enum Kind {
        case free, names, records
    }

    /// A key's place in the file.
    private struct Key {
        let start: Int
        let count: Int
    }

    /// A tree that is walked, and what was counted in it.
    private struct Walk {
        let tree: MetaPage.Tree
        let kind: Kind
        /// Whether it is the tree with the number of the commit.
        var isMeta = false
        var branches: UInt64 = 0
        var leaves: UInt64 = 0
        var overflows: UInt64 = 0
        var entries: UInt64 = 0

        var hasIntegerKeys: Bool { tree.flags & MetaPage.integerKeys != 0 }
    }

    private let file: UnsafeRawBufferPointer
    private let pageBytes: Int
    private let lastPage: UInt64
    /// The last one that the file has.
    private let lastPresent: UInt64
    private let transaction: UInt64
    /// A bit for each page that was reached.
    private var reached: [UInt64]
    /// A bit for each second byte of a page: a node begins there.
    private var starts: [UInt64]

    /// Trees that were put off, by their names.
    private var deferred: [String: MetaPage.Tree] = [:]
    /// The list of free pages, if it was put off.
    private var deferredFree: MetaPage.Tree?
    /// All trees by their names, put off or not.
    private(set) var trees: [String: MetaPage.Tree] = [:]
    private let later: Set<String>
    private let isStopped: () -> Bool

    private(set) var findings: [Finding] = []
    /// How many there were, kept or not.
    private(set) var findingsCount = 0
    /// The number of the transaction that the tree says that it is of; `nil` when it says none.
    private(set) var commit: UInt64?

    /// Checks all that `meta` leads to, but for the trees with the names `later`. If there are such names, the list of
    /// free pages is put off, too. `file`: the bytes of the file; only free pages may lie behind them. `isStopped` is
    /// asked often; when it returns true, the check goes no further, and what it says means nothing.
    init(
        _ file: UnsafeRawBufferPointer, _ meta: MetaPage, deferring later: Set<String> = [],
        isStopped: @escaping () -> Bool = { false }
    ) {
        precondition(file.count >= 2 * meta.pageBytes, "a file has no meta pages")
        self.file = file
        lastPresent = min(meta.lastPage, UInt64(file.count / meta.pageBytes - 1))
        pageBytes = meta.pageBytes
        lastPage = meta.lastPage
        transaction = meta.transaction
        reached = Array(repeating: 0, count: Int(meta.lastPage) / 64 + 1)
        starts = Array(repeating: 0, count: meta.pageBytes / 128)
        reached[0] = 0b11
        self.later = later
        self.isStopped = isStopped
        walk(meta.main, .names, named: "names")
        if later.isEmpty { walk(meta.free, .free, named: "free pages") } else { deferredFree = meta.free }
    }

    /// Checks a tree that was put off, and with the last one the list of free pages. Does nothing when there is none of
    /// that name.
    mutating func walkDeferred(_ name: String) {
        if let tree = deferred.removeValue(forKey: name) { walk(tree, .records, named: name) }
        walkDeferredFree()
    }

    private mutating func walkDeferredFree() {
        guard deferred.isEmpty, let free = deferredFree else { return }
        deferredFree = nil
        walk(free, .free, named: "free pages")
    }

    /// Whether nothing is put off.
    var isDone: Bool { deferred.isEmpty && deferredFree == nil }

    /// Checks all that was put off.
    mutating func walkDeferred() {
        for name in deferred.keys.sorted() { walkDeferred(name) }
        walkDeferredFree()
    }

    private mutating func report(_ page: UInt64, _ what: @autoclosure () -> String) {
        findingsCount += 1
        if findings.count < PageCheck.findingsMax { findings.append(Finding(page: page, what: what())) }
    }

    // MARK: Bytes

    /// 0 behind the end of the file: pages that a service has used again, while this process was stopped, may say
    /// something else when they are read twice.
    private func load<T: FixedWidthInteger>(_ offset: Int, as: T.Type) -> T {
        guard offset <= file.count - MemoryLayout<T>.size else { return 0 }
        return T(littleEndian: file.loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// The bytes from `start` on, fewer at the end of the file.
    private func bytes(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
        let start = min(start, file.count)
        return UnsafeRawBufferPointer(rebasing: file[start..<start + min(count, file.count - start)])
    }

    private func start(of page: UInt64) -> Int { Int(page) * pageBytes }

    /// Notes that pages are used, or free. Returns false when one is outside of the file, or was reached before.
    private mutating func reach(_ first: UInt64, count: UInt64 = 1, isFree: Bool = false) -> Bool {
        let last = isFree ? lastPage : lastPresent
        guard first >= 2, first <= last, count >= 1, count <= last + 1 - first else { return false }
        for page in first..<first + count {
            let bit: UInt64 = 1 << (page % 64)
            guard reached[Int(page / 64)] & bit == 0 else { return false }
            reached[Int(page / 64)] |= bit
        }
        return true
    }

    private func isBefore(_ one: Key, _ other: Key, integers: Bool) -> Bool {
        if integers { return load(one.start, as: UInt64.self) < load(other.start, as: UInt64.self) }
        let (first, second) = (bytes(one.start, one.count), bytes(other.start, other.count))
        guard let one = first.baseAddress, let other = second.baseAddress else { return false }
        let order = memcmp(one, other, min(first.count, second.count))
        return order == 0 ? first.count < second.count : order < 0
    }

    // MARK: Trees

    private mutating func begin(_ tree: MetaPage.Tree, named name: String) {
        trees[name] = tree
        // LMDB looks up where a tree begins before anything of the tree is read.
        guard tree.isPlausible(lastPage: lastPage) else {
            return report(0, "the tree of \(name) begins outside of the file")
        }
        if later.contains(name) { deferred[name] = tree } else { walk(tree, .records, named: name) }
    }

    private mutating func walk(_ tree: MetaPage.Tree, _ kind: Kind, named name: @autoclosure () -> String) {
        guard tree.isPlausible(lastPage: lastPage) else {
            return report(0, "the tree of \(name()) begins outside of the file")
        }
        var walk = Walk(tree: tree, kind: kind)
        walk.isMeta = kind == .records && name() == "meta"
        if tree.root != MetaPage.Tree.noRoot { visit(tree.root, level: 1, above: nil, below: nil, &walk) }
        let isCounted =
            walk.branches == tree.branches && walk.leaves == tree.leaves && walk.overflows == tree.overflows
            && walk.entries == tree.entries
        if !isCounted, findingsCount == 0 {
            report(tree.root, "the tree of \(name()) has other pages or entries than it counts")
        }
    }

    /// Visits a page and what is below it. `low`: keys are not below it; `high`: they are below it.
    private mutating func visit(_ page: UInt64, level: Int, above low: Key?, below high: Key?, _ walk: inout Walk) {
        guard reach(page) else { return report(page, "is outside of the file or used twice") }
        let isLeaf = level == walk.tree.depth
        guard let count = nodes(of: page, isLeaf: isLeaf, walk.kind) else { return }
        guard areKeysInOrder(page, count, isLeaf: isLeaf, above: low, below: high, walk) else {
            return report(page, "its keys are not in order")
        }
        if isLeaf {
            walk.leaves += 1
            walk.entries += UInt64(count)
            for index in 0..<count { read(node(index, of: page), on: page, &walk) }
            return
        }
        walk.branches += 1
        guard !isStopped() else { return }
        for index in 0..<count {
            let place = node(index, of: page)
            let child =
                UInt64(load(place, as: UInt32.self)) | UInt64(load(place + 4, as: UInt16.self)) << 32
            visit(
                child, level: level + 1, above: index == 0 ? low : key(at: place),
                below: index + 1 < count ? key(at: node(index + 1, of: page)) : high, &walk)
        }
    }

    private func node(_ index: Int, of page: UInt64) -> Int {
        start(of: page) + Int(load(start(of: page) + PageCheck.headerBytes + 2 * index, as: UInt16.self))
    }

    /// `node`: its place in the file, which was checked.
    private func key(at node: Int) -> Key {
        Key(start: node + PageCheck.nodeBytes, count: Int(load(node + 6, as: UInt16.self)))
    }

    // MARK: Pages

    /// Checks a page's header and where its nodes are. Returns how many there are; `nil` after a finding.
    private mutating func nodes(of page: UInt64, isLeaf: Bool, _ kind: Kind) -> Int? {
        let start = start(of: page)
        let number = load(start, as: UInt64.self)
        guard number == page else {
            report(page, "says that it is page \(number)")
            return nil
        }
        guard load(start + 10, as: UInt16.self) == (isLeaf ? Flag.leaf : Flag.branch) else {
            report(page, "is no \(isLeaf ? "leaf" : "branch")")
            return nil
        }
        let (lower, upper) = (Int(load(start + 12, as: UInt16.self)), Int(load(start + 14, as: UInt16.self)))
        guard lower >= PageCheck.headerBytes, lower % 2 == 0, upper % 2 == 0, lower <= upper, upper <= pageBytes else {
            report(page, "its free space is from \(lower) to \(upper)")
            return nil
        }
        let count = (lower - PageCheck.headerBytes) / 2
        // LMDB asserts two children, but for its list of free pages.
        guard count >= (isLeaf || kind == .free ? 1 : 2) else {
            report(page, "has too few nodes")
            return nil
        }
        for word in starts.indices { starts[word] = 0 }
        for index in 0..<count {
            let offset = Int(load(start + PageCheck.headerBytes + 2 * index, as: UInt16.self))
            guard offset >= upper, offset % 2 == 0, offset + PageCheck.nodeBytes <= pageBytes else {
                report(page, "node \(index) is outside of the page")
                return nil
            }
            starts[offset / 128] |= 1 << UInt64(offset / 2 % 64)
        }
        guard isTiled(start, from: upper, nodes: count, isLeaf: isLeaf) else {
            report(page, "its nodes overlap, or leave gaps")
            return nil
        }
        return count
    }

    /// Whether `count` nodes, one behind the other, fill the page from `upper` to its end, and are those of `starts`.
    private func isTiled(_ start: Int, from upper: Int, nodes count: Int, isLeaf: Bool) -> Bool {
        var offset = upper
        var found = 0
        while offset < pageBytes {
            guard offset + PageCheck.nodeBytes <= pageBytes,
                starts[offset / 128] & 1 << UInt64(offset / 2 % 64) != 0
            else { return false }
            var bytes = PageCheck.nodeBytes + Int(load(start + offset + 6, as: UInt16.self))
            if isLeaf {
                let isBig = load(start + offset + 4, as: UInt16.self) & Flag.bigValue != 0
                bytes += isBig ? 8 : Int(load(start + offset, as: UInt32.self))
            }
            offset += bytes + bytes % 2
            found += 1
        }
        return offset == pageBytes && found == count
    }

    private func areKeysInOrder(
        _ page: UInt64, _ count: Int, isLeaf: Bool, above low: Key?, below high: Key?, _ walk: Walk
    ) -> Bool {
        let integers = walk.hasIntegerKeys
        var before = low
        // The first key of a branch stands for everything below the second.
        for index in (isLeaf ? 0 : 1)..<count {
            let key = key(at: node(index, of: page))
            guard integers ? key.count == 8 : key.count >= 1 && key.count <= PageCheck.keyBytesMax else { return false }
            if let before {
                // Only the first key of a leaf may be equal to the one in the branch above.
                let isInOrder =
                    isLeaf && index == 0
                    ? !isBefore(key, before, integers: integers) : isBefore(before, key, integers: integers)
                guard isInOrder else { return false }
            }
            before = key
        }
        guard let high, let before else { return true }
        return isBefore(before, high, integers: integers)
    }

    // MARK: Values

    /// Checks the value of a leaf's node, whose place was checked.
    private mutating func read(_ node: Int, on page: UInt64, _ walk: inout Walk) {
        let flags = load(node + 4, as: UInt16.self)
        let count = Int(load(node, as: UInt32.self))
        var value = key(at: node).start + key(at: node).count
        if walk.kind == .names {
            guard flags == Flag.tree, count == MetaPage.Tree.byteCount else {
                return report(page, "the place of a tree is damaged")
            }
            let record = bytes(value, count)
            guard record.count == count else { return report(page, "the place of a tree is outside of the file") }
            let tree = MetaPage.Tree(record)
            guard tree.flags == 0 || tree.flags == MetaPage.integerKeys else {
                return report(page, "the flags of a tree are not ours")
            }
            let name = key(at: node)
            return begin(tree, named: String(decoding: bytes(name.start, name.count), as: UTF8.self))
        }
        guard flags == 0 || flags == Flag.bigValue else { return report(page, "a node has unknown flags") }
        if flags == Flag.bigValue {
            let first = load(value, as: UInt64.self)
            let needed = UInt64((PageCheck.headerBytes - 1 + count) / pageBytes + 1)
            guard first >= 2, first <= lastPresent else { return report(page, "a value is outside of the file") }
            let start = start(of: first)
            let pages = UInt64(load(start + 12, as: UInt32.self))
            guard load(start, as: UInt64.self) == first, load(start + 10, as: UInt16.self) == Flag.overflow,
                pages >= needed
            else { return report(first, "is no beginning of a value") }
            guard reach(first, count: pages) else {
                return report(first, "the pages of a value are outside of the file or used twice")
            }
            walk.overflows += pages
            value = start + PageCheck.headerBytes
        }
        if walk.kind == .free { readFreed(node, on: page, value, count) }
        if walk.isMeta, flags == 0 { readTotals(node, value, count) }
    }

    /// The totals tell by which transaction they were written. Damaged ones tell nothing here.
    private mutating func readTotals(_ node: Int, _ value: Int, _ bytes: Int) {
        let place = key(at: node)
        let name = self.bytes(place.start, place.count)
        guard name.elementsEqual(Totals.key), let sealed = SealedValue(self.bytes(value, bytes)),
            sealed.isGenuine(seed: Database.seed(of: name, in: .meta)),
            let totals = try? Totals(reading: sealed.contents)
        else { return }
        commit = totals.transaction
    }

    /// Checks a record of the list of free pages: how many it lists, and their numbers in descending order.
    private mutating func readFreed(_ node: Int, on page: UInt64, _ value: Int, _ bytes: Int) {
        let freedBy = load(key(at: node).start, as: UInt64.self)
        guard freedBy >= 1, freedBy <= transaction, bytes >= 8, bytes % 8 == 0 else {
            return report(page, "a record of free pages is damaged")
        }
        let count = load(value, as: UInt64.self)
        guard count <= UInt64(bytes / 8 - 1) else { return report(page, "a record of free pages is too short") }
        var before = UInt64.max
        for index in 0..<Int(count) {
            let free = load(value + 8 * (index + 1), as: UInt64.self)
            guard free < before else { return report(page, "free pages are not in order") }
            guard reach(free, isFree: true) else { return report(free, "is free, and outside of the file or used") }
            before = free
        }
    }
}
