package import Core
import Hashing

/// Why a leaf belongs under a root: its position and the siblings on the way up.
package struct InclusionProof: Hashable, Sendable {
    /// The leaf's position, from 0.
    package let index: UInt64
    /// Sibling digests, leaf level first.
    package let siblings: [Digest]

    package init(index: UInt64, siblings: [Digest]) {
        self.index = index
        self.siblings = siblings
    }

    /// The root that this proof leads to from `leaf`; `nil` when there are more than 32 siblings or the
    /// index is not below 2^count(siblings).
    package func root(from leaf: Digest) -> Digest? {
        guard siblings.count <= Limits.inclusionHashesMax,
            RootHash.isValid(index: index, levels: siblings.count)
        else { return nil }
        return siblings.withUnsafeBytes { bytes in
            // Without siblings the loop does not run and the address is not read.
            RootHash.climb(
                from: leaf, index: index, siblings: bytes.baseAddress,
                count: siblings.count)
        }
    }
}

/// A person's tree of device keys, with every level kept.
///
/// A level with an odd number of nodes pairs its last node with itself, as the
/// article's figure does. Such a tree proves the nodes below a doubled one at
/// two positions; the leaf is the same, so nothing is gained by it.
package struct MerkleTree: Sendable {
    /// Leaves first, the root alone last.
    private let levels: [[Digest]]

    /// `leaves`: 1 to 2^20 digests; `nil` otherwise.
    package init?(leaves: [Digest]) {
        guard (1...Limits.treeLeavesMax).contains(leaves.count) else { return nil }
        var levels = [leaves]
        var level = leaves
        while level.count > 1 {
            level = stride(from: 0, to: level.count, by: 2).map { left in
                SHA256.node(level[left], level[min(left + 1, level.count - 1)])
            }
            levels.append(level)
        }
        self.levels = levels
    }

    /// The tree over the hashes of `keys`, padded with random keys to `size` leaves so that the number of
    /// devices does not show; more keys than that are padded to the next power of two.
    ///
    /// `nil` without keys or with more than 2^20 leaves.
    package init?(keys: [[UInt8]], paddedTo size: Int = 8, random: RandomSource = .system) {
        guard !keys.isEmpty, keys.count <= Limits.treeLeavesMax, size <= Limits.treeLeavesMax else { return nil }
        var target = max(size, 1)
        if keys.count > target {
            target = 1
            while target < keys.count { target *= 2 }
        }
        // An X9.63 point whose coordinates are random: as a leaf not to be told from a device's key, and
        // nobody has a private key for it.
        let padding = (keys.count..<target).map { _ in SHA256.hash([0x04] + random.bytes(64)) }
        self.init(leaves: keys.map { SHA256.hash($0) } + padding)
    }

    /// The number of leaves, padding included.
    package var leafCount: Int { levels[0].count }

    /// The root hash: the person's identity in the collaboration.
    package var root: Digest { levels[levels.count - 1][0] }

    /// The proof of the leaf at `index`; `nil` when there is no such leaf.
    package func proof(at index: Int) -> InclusionProof? {
        guard levels[0].indices.contains(index) else { return nil }
        var position = index
        var siblings: [Digest] = []
        for level in levels.dropLast() {
            siblings.append(level[min(position ^ 1, level.count - 1)])
            position /= 2
        }
        return InclusionProof(index: UInt64(index), siblings: siblings)
    }
}
