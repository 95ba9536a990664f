/// The Merkle tree of the article as a recursion over levels, hashed by `ReferenceSHA256`. Digests are
/// plain byte arrays.
package enum ReferenceMerkle {
    /// The node above two neighbours.
    package static func node(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        ReferenceSHA256.hash(left + right)
    }

    /// The root over `leaves` (at least one) and, for every leaf, its siblings on the way up. A level
    /// with an odd number of nodes pairs its last node with itself.
    package static func tree(_ leaves: [[UInt8]]) -> (root: [UInt8], paths: [[[UInt8]]]) {
        if leaves.count == 1 { return (leaves[0], [[]]) }
        let level = leaves.count % 2 == 1 ? leaves + leaves.suffix(1) : leaves
        var parents: [[UInt8]] = []
        for left in stride(from: 0, to: level.count, by: 2) {
            parents.append(node(level[left], level[left + 1]))
        }
        let above = tree(parents)
        let paths = leaves.indices.map { position in
            let sibling = position % 2 == 0 ? level[position + 1] : level[position - 1]
            return [sibling] + above.paths[position / 2]
        }
        return (above.root, paths)
    }

    /// The root that rule 2 of PROTOCOL.md, "The rules of a proof", leads to.
    package static func climb(from leaf: [UInt8], index: UInt64, siblings: [[UInt8]]) -> [UInt8] {
        guard let sibling = siblings.first else { return leaf }
        let parent = index % 2 == 0 ? node(leaf, sibling) : node(sibling, leaf)
        return climb(from: parent, index: index / 2, siblings: Array(siblings.dropFirst()))
    }
}
