import TestSupport

/// How a trial damages a file.
enum Damage: String, CaseIterable {
    /// One bit anywhere in a page.
    case bit
    /// One bit of an entry in a leaf: its key, its seal or its contents.
    case bitOfEntry
    /// One bit of the entry of a record.
    case bitOfRecord
    /// One bit of a branch.
    case bitOfBranch
    /// One bit of a page's header, of its table of nodes, or of a node's header.
    case bitOfStructure
    case zeroedPage
    case swappedPages
    /// A page as it was in an older version of the file.
    case stalePage
    /// The second half of a page as it was before: a torn write.
    case tornPage
    case metaZeroed
    /// A meta page is garbage from some byte on.
    case metaGarbage
    /// One bit of the part of a meta page that means something.
    case metaBit
    /// The older meta page says a later transaction.
    case olderRaised
    /// The newest meta page is the one of two commits before.
    case metaStale
    case fileCut
}

/// A copy of a data file, to be damaged.
///
/// LMDB's page: number (8), pad (2), flags (2: 1 branch, 2 leaf), end of the offsets (2), begin of the nodes (2),
/// offsets (2 each). Node: size of the value (4), flags (2), size of the key (2), key, value.
struct DamagedFile {
    private(set) var bytes: [UInt8]
    /// An older version of the file.
    private let older: [UInt8]
    /// The two meta pages of two commits before.
    private let earlier: [UInt8]
    private static let page = 4096
    static let metaBytes = 152

    init(_ bytes: [UInt8], older: [UInt8], earlier: [UInt8]) {
        (self.bytes, self.older, self.earlier) = (bytes, older, earlier)
    }

    private func number<T: FixedWidthInteger>(_ offset: Int, _: T.Type) -> T {
        bytes.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
    }

    private func short(_ offset: Int) -> Int { Int(number(offset, UInt16.self)) }

    private var newestSlot: Int { number(144, UInt64.self) > number(DamagedFile.page + 144, UInt64.self) ? 0 : 1 }

    /// Bytes of the file up to the last page that the newest commit has.
    var usedBytes: Int { (Int(number(newestSlot * DamagedFile.page + 136, UInt64.self)) + 1) * DamagedFile.page }

    private func range(_ page: Int) -> Range<Int> { page * DamagedFile.page..<(page + 1) * DamagedFile.page }

    private mutating func flipBit(_ offset: Int, _ random: inout SeededGenerator) {
        bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    }

    mutating func apply(_ damage: Damage, _ random: inout SeededGenerator) {
        let size = DamagedFile.page
        // Only pages that were ever written.
        let pages = (2..<usedBytes / size).filter { page in bytes[range(page).prefix(24)].contains { $0 != 0 } }
        guard let page = pages.randomElement(using: &random), let other = pages.randomElement(using: &random) else {
            return
        }
        let slot = Int.random(in: 0..<2, using: &random)
        switch damage {
        case .bit: flipBit(Int.random(in: range(page), using: &random), &random)
        case .bitOfEntry: flipEntry(pages, &random) { _ in true }
        case .bitOfRecord: flipEntry(pages, &random) { $0.starts(with: Array("record-".utf8)) }
        case .bitOfBranch:
            guard let branch = pages.filter({ short($0 * size + 10) == 1 }).randomElement(using: &random) else {
                return
            }
            flipBit(Int.random(in: range(branch), using: &random), &random)
        case .bitOfStructure: flipBit(structureOffset(page, &random), &random)
        case .zeroedPage: bytes.replaceSubrange(range(page), with: repeatElement(0, count: size))
        case .swappedPages:
            let kept = Array(bytes[range(page)])
            bytes.replaceSubrange(range(page), with: Array(bytes[range(other)]))
            bytes.replaceSubrange(range(other), with: kept)
        case .stalePage, .tornPage: takeOlder(pages, isTorn: damage == .tornPage, &random)
        case .metaZeroed: bytes.replaceSubrange(range(slot), with: repeatElement(0, count: size))
        case .metaGarbage:
            let first = slot * size + Int.random(in: 0..<160, using: &random)
            bytes.replaceSubrange(first..<(slot + 1) * size, with: random.bytes((slot + 1) * size - first))
        case .metaBit: flipBit(slot * size + Int.random(in: 0..<DamagedFile.metaBytes, using: &random), &random)
        case .olderRaised:
            let place = (1 - newestSlot) * size + 144
            let raised = number(place, UInt64.self) + [2, 1, 4096, 1 << 40][Int.random(in: 0..<4, using: &random)]
            withUnsafeBytes(of: raised.littleEndian) { bytes.replaceSubrange(place..<place + 8, with: $0) }
        case .metaStale:
            let place = newestSlot * DamagedFile.metaBytes
            bytes.replaceSubrange(
                newestSlot * size..<newestSlot * size + DamagedFile.metaBytes,
                with: earlier[place..<place + DamagedFile.metaBytes])
        case .fileCut: bytes.removeLast(bytes.count - Int.random(in: 0..<usedBytes, using: &random))
        }
    }

    private mutating func takeOlder(_ pages: [Int], isTorn: Bool, _ random: inout SeededGenerator) {
        let changed = pages.filter { page in
            let range = range(page)
            return range.upperBound <= older.count && older[range] != bytes[range]
                && older[range].prefix(24).contains { $0 != 0 }
        }
        guard let page = changed.randomElement(using: &random) else { return }
        let part = isTorn ? range(page).lowerBound + DamagedFile.page / 2..<range(page).upperBound : range(page)
        bytes.replaceSubrange(part, with: older[part])
    }

    /// Flips a bit of an entry in a leaf whose key is wanted.
    private mutating func flipEntry(
        _ pages: [Int], _ random: inout SeededGenerator, _ isWanted: (ArraySlice<UInt8>) -> Bool
    ) {
        for _ in 0..<10_000 {
            guard let page = pages.randomElement(using: &random) else { return }
            let start = range(page).lowerBound
            let count = (short(start + 12) - 16) / 2
            guard short(start + 10) & 0x7 == 2, count > 0, count < 1000 else { continue }
            let entry = start + short(start + 16 + 2 * Int.random(in: 0..<count, using: &random))
            guard entry + 8 < range(page).upperBound else { continue }
            // The value of a large entry is on pages of its own; what is here is their number.
            let isElsewhere = short(entry + 4) & 1 != 0
            let keyBytes = short(entry + 6)
            let length = keyBytes + (isElsewhere ? 8 : Int(number(entry, UInt32.self)))
            guard length > 0, entry + 8 + length <= range(page).upperBound,
                isWanted(bytes[entry + 8..<entry + 8 + keyBytes])
            else { continue }
            return flipBit(entry + 8 + Int.random(in: 0..<length, using: &random), &random)
        }
    }

    /// A byte of a page's header, of its table of nodes, or of the header of a node.
    private func structureOffset(_ page: Int, _ random: inout SeededGenerator) -> Int {
        let start = range(page).lowerBound
        let count = max(0, short(start + 12) - 16) / 2
        guard count > 0, count < 1000 else { return start + Int.random(in: 0..<16, using: &random) }
        let index = Int.random(in: 0..<count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return start + Int.random(in: 0..<16, using: &random)
        case 1: return start + 16 + 2 * index + Int.random(in: 0..<2, using: &random)
        default:
            let node = short(start + 16 + 2 * index)
            return start + min(node + Int.random(in: 0..<8, using: &random), DamagedFile.page - 1)
        }
    }
}
