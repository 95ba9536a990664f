import CLMDB
import Core

/// Ascending root hashes inside a bucket's value, borrowed from the map.
struct PackedRoots {
    let start: UnsafeRawPointer?
    let count: Int

    /// `bytes`: the number of bytes is a multiple of 32.
    init(_ bytes: UnsafeRawBufferPointer) {
        start = bytes.baseAddress
        count = bytes.count / Digest.byteCount
    }

    /// Whether each root is above the one before, which `contains` requires.
    static func areAscending(_ roots: some Collection<Digest>) -> Bool {
        zip(roots, roots.dropFirst()).allSatisfy { $0 < $1 }
    }

    subscript(index: Int) -> Digest {
        assert(index >= 0 && index < count, "there is no such root")
        guard let start else { return .zero }
        return Digest(at: start + index * Digest.byteCount)
    }

    /// Prefetches three cache lines (six roots) around a position.
    @inline(__always)
    func prefetch(around position: Int) {
        guard let start else { return }
        let middle = start + position * Digest.byteCount
        lmdb_prefetch(middle)
        lmdb_prefetch(middle + PackedRoots.lineBytes)
        if position > 1 { lmdb_prefetch(middle - PackedRoots.lineBytes) }
    }

    private static let lineBytes = 64

    /// Whether the root at `position` is below `root`, whose prefix is `prefix`.
    @inline(__always)
    private func isBelow(_ position: Int, _ root: Digest, _ prefix: UInt64) -> Bool {
        guard let address = start.map({ $0 + position * Digest.byteCount }) else { return false }
        let other = UInt64(bigEndian: address.loadUnaligned(as: UInt64.self))
        return other < prefix || (other == prefix && Digest(at: address) < root)
    }

    /// Finds the position of the first root that is not below `root`.
    func lowerBound(of root: Digest) -> Int {
        lowerBound(of: root, between: 0, and: count)
    }

    private func lowerBound(of root: Digest, between least: Int, and most: Int) -> Int {
        let prefix = root.prefix
        var low = least
        var high = most
        while low < high {
            let middle = (low + high) / 2
            if isBelow(middle, root, prefix) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Does the same, but faster when the result is near `guess`, a position from 0 to `count`: it does an exponential
    /// search from there, then a binary search.
    func lowerBound(of root: Digest, near guess: Int) -> Int {
        assert(guess >= 0 && guess <= count, "a search starts outside of the roots")
        let prefix = root.prefix
        var step = 2
        var low = guess
        var high = guess
        if guess < count, isBelow(guess, root, prefix) {
            repeat {
                low = high + 1
                high = min(high + step, count)
                step *= 2
            } while high < count && isBelow(high, root, prefix)
        } else {
            while low > 0 {
                high = low
                low = max(0, low - step)
                step *= 2
                if isBelow(low, root, prefix) { break }
            }
        }
        return lowerBound(of: root, between: low, and: high)
    }

    func contains(_ root: Digest) -> Bool {
        isAt(lowerBound(of: root), root)
    }

    func contains(_ root: Digest, near guess: Int) -> Bool {
        isAt(lowerBound(of: root, near: guess), root)
    }

    private func isAt(_ position: Int, _ root: Digest) -> Bool {
        position < count && self[position] == root
    }
}
