package import Core
import Hashing

/// Proves that a leaf belongs under a root: the leaf's position and the siblings on the path to the root.
package struct InclusionProof: Hashable, Sendable {
    /// The leaf's position, from 0.
    package let index: UInt64
    /// Sibling digests, leaf level first.
    package let siblings: [Digest]

    package init(index: UInt64, siblings: [Digest]) {
        self.index = index
        self.siblings = siblings
    }

    /// Computes the root that `leaf` and this proof lead to; `nil` when there are more than 32 siblings or the index is
    /// not below 2^count(siblings).
    package func root(from leaf: Digest) -> Digest? {
        guard isPossible else { return nil }
        return siblings.withUnsafeBytes { bytes in
            // Without siblings the loop does not run, so the address is not read.
            RootHash.climb(
                from: leaf, index: index, siblings: bytes.baseAddress,
                count: siblings.count)
        }
    }

    /// The nodes on the way from `leaf`, which is the first of them, to the root, which is the last; `nil` when there
    /// is no root.
    package func nodes(from leaf: Digest) -> [Digest]? {
        guard isPossible else { return nil }
        var nodes = [leaf]
        nodes.reserveCapacity(siblings.count + 1)
        var local = leaf
        for (level, sibling) in siblings.enumerated() {
            local = isRight(atLevel: level) ? SHA256.node(sibling, local) : SHA256.node(local, sibling)
            nodes.append(local)
        }
        assert(local == root(from: leaf), "the nodes lead to another root")
        return nodes
    }

    /// Whether the node of a level (0: the leaf's) is on the right, and its sibling on the left.
    package func isRight(atLevel level: Int) -> Bool { index >> UInt64(level) & 1 == 1 }

    /// Whether a tree within the limits can have this proof.
    private var isPossible: Bool {
        siblings.count <= Limits.inclusionHashesMax && RootHash.isValid(index: index, levels: siblings.count)
    }
}

/// A person's tree of device keys. It keeps every level.
///
/// A level with an odd number of nodes pairs its last node with itself, as the article's figure does. So the leaves
/// below that node have proofs at two positions. A forger gains nothing from this, because the leaf is the same.
package struct MerkleTree: Sendable {
    /// From the leaves (first) to the root, which is alone in the last level.
    private let levels: [[Digest]]

    /// Builds a tree of 1 to 2^20 leaves; `nil` for any other number.
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

    /// Builds the tree over the hashes of `keys`. Random keys pad it to `size` leaves, so that the number of devices
    /// does not show. More keys than `size` are padded to the next power of two.
    ///
    /// Returns `nil` without keys or with more than 2^20 leaves.
    package init?(keys: [[UInt8]], paddedTo size: Int = 8, random: RandomSource = .system) {
        guard !keys.isEmpty, keys.count <= Limits.treeLeavesMax, size <= Limits.treeLeavesMax else { return nil }
        var target = max(size, 1)
        if keys.count > target {
            target = 1
            while target < keys.count { target *= 2 }
        }
        // An X9.63 point with random coordinates. Its hash can't be told from that of a device's key, and nobody has a
        // private key for it.
        let padding = (keys.count..<target).map { _ in SHA256.hash([0x04] + random.bytes(64)) }
        self.init(leaves: keys.map { SHA256.hash($0) } + padding)
    }

    /// The number of leaves, padding included.
    package var leafCount: Int { levels[0].count }

    /// The root hash: the person's identity in the collaboration.
    package var root: Digest { levels[levels.count - 1][0] }

    /// Makes the proof of the leaf at `index`; `nil` when there is no such leaf.
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
