import Foundation
import TestSupport

/// A copy of a data file, to be damaged.
struct DamagedFile {
    /// What happens to the file.
    enum Damage: String, CaseIterable {
        /// One bit of a page's header, of its table of nodes, or of a node's header.
        case structureBit
        case anyBit
        case pageZeroed
        case pagesSwapped
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

    private(set) var bytes: [UInt8]
    /// Meta pages of earlier commits, by their slots.
    let earlier: [[UInt8]]
    private static let pageBytes = 4096

    init(_ bytes: [UInt8], earlier: [[UInt8]]) {
        self.bytes = bytes
        self.earlier = earlier
    }

    private func number<T: FixedWidthInteger>(_ offset: Int, _: T.Type) -> T {
        bytes.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
    }

    private var newestSlot: Int {
        number(144, UInt64.self) > number(DamagedFile.pageBytes + 144, UInt64.self) ? 0 : 1
    }

    /// Pages that the newest commit has, without the meta pages.
    private var pages: Range<Int> { 2..<Int(number(newestSlot * DamagedFile.pageBytes + 136, UInt64.self)) + 1 }

    private mutating func flipBit(_ offset: Int, _ random: inout SeededGenerator) {
        bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    }

    /// A byte of a page's header, of its table of nodes, or of the header of a node.
    private func structureOffset(_ page: Int, _ random: inout SeededGenerator) -> Int {
        let start = page * DamagedFile.pageBytes
        let count = max(0, Int(number(start + 12, UInt16.self)) - 16) / 2
        guard count > 0, count < 1000 else { return start + Int.random(in: 0..<16, using: &random) }
        let index = Int.random(in: 0..<count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return start + Int.random(in: 0..<16, using: &random)
        case 1: return start + 16 + 2 * index + Int.random(in: 0..<2, using: &random)
        default:
            let node = Int(number(start + 16 + 2 * index, UInt16.self))
            return start + min(node + Int.random(in: 0..<8, using: &random), DamagedFile.pageBytes - 1)
        }
    }

    mutating func apply(_ damage: Damage, _ random: inout SeededGenerator) {
        let size = DamagedFile.pageBytes
        let page = Int.random(in: pages, using: &random)
        let slot = Int.random(in: 0..<2, using: &random)
        switch damage {
        case .structureBit: flipBit(structureOffset(page, &random), &random)
        case .anyBit: flipBit(page * size + Int.random(in: 0..<size, using: &random), &random)
        case .pageZeroed: bytes.replaceSubrange(page * size..<(page + 1) * size, with: repeatElement(0, count: size))
        case .pagesSwapped:
            let other = Int.random(in: pages, using: &random)
            let kept = Array(bytes[page * size..<(page + 1) * size])
            bytes.replaceSubrange(page * size..<(page + 1) * size, with: bytes[other * size..<(other + 1) * size])
            bytes.replaceSubrange(other * size..<(other + 1) * size, with: kept)
        case .metaZeroed:
            bytes.replaceSubrange(slot * size..<(slot + 1) * size, with: repeatElement(0, count: size))
        case .metaGarbage:
            let first = slot * size + Int.random(in: 0..<160, using: &random)
            bytes.replaceSubrange(first..<(slot + 1) * size, with: random.bytes((slot + 1) * size - first))
        case .metaBit: flipBit(slot * size + Int.random(in: 0..<152, using: &random), &random)
        case .olderRaised:
            let older = (1 - newestSlot) * size
            let raised =
                number(older + 144, UInt64.self) + [2, 1, 4096, 1 << 40][Int.random(in: 0..<4, using: &random)]
            withUnsafeBytes(of: raised.littleEndian) { bytes.replaceSubrange(older + 144..<older + 152, with: $0) }
        case .metaStale:
            guard let stale = earlier.first(where: { $0[0] == UInt8(newestSlot) }) else { return }
            bytes.replaceSubrange(newestSlot * size..<newestSlot * size + stale.count, with: stale)
        case .fileCut:
            // What follows the last page is reserved, and empty.
            let used = pages.upperBound * size
            bytes.removeLast(bytes.count - Int.random(in: 0..<used, using: &random))
        }
    }
}
