import Core
import Hashing
import Merkle
import TestSupport
import Testing

/// The figure of the article: six devices in a tree whose third level is odd.
struct ArticleFigureTests {
    private let keys = ["P1", "P2", "P3", "R1", "R2", "R3"].map { Array($0.utf8) }

    @Test("P3 is proven at index 2 by H4, H7 and H11")
    func thirdKey() throws {
        let h = keys.map { ReferenceSHA256.hash($0) }
        let h7 = ReferenceMerkle.node(h[0], h[1])
        let h8 = ReferenceMerkle.node(h[2], h[3])
        let h9 = ReferenceMerkle.node(h[4], h[5])
        let h10 = ReferenceMerkle.node(h7, h8)
        let h11 = ReferenceMerkle.node(h9, h9)
        let root = ReferenceMerkle.node(h10, h11)

        let tree = try #require(MerkleTree(leaves: keys.map { SHA256.hash($0) }))
        #expect(tree.root.bytes == root)
        let proof = try #require(tree.proof(at: 2))
        #expect(proof.index == 2)
        #expect(proof.siblings.map(\.bytes) == [h[3], h7, h11])
        #expect(proof.root(from: SHA256.hash(keys[2]))?.bytes == root)
    }

    @Test("An odd level pairs its last node with itself")
    func oddLevel() throws {
        let leaves = keys.prefix(3).map { SHA256.hash($0) }
        let tree = try #require(MerkleTree(leaves: leaves))
        let left = ReferenceMerkle.node(leaves[0].bytes, leaves[1].bytes)
        let right = ReferenceMerkle.node(leaves[2].bytes, leaves[2].bytes)
        #expect(tree.root.bytes == ReferenceMerkle.node(left, right))
        #expect(tree.proof(at: 2)?.siblings.map(\.bytes) == [leaves[2].bytes, left])
    }
}

struct MerkleTreeTests {
    private func leaves(_ count: Int, _ generator: inout SeededGenerator) -> [Digest] {
        (0..<count).map { _ in generator.digest() }
    }

    @Test("Trees of 1 to 130 leaves have the reference's root and its proof of every leaf")
    func everySmallSize() throws {
        var generator = SeededGenerator(seed: runSeed)
        for size in 1...130 {
            let context: Comment = "seed \(runSeed), \(size) leaves"
            let leaves = leaves(size, &generator)
            let tree = try #require(MerkleTree(leaves: leaves), context)
            let reference = ReferenceMerkle.tree(leaves.map(\.bytes))
            #expect(tree.leafCount == size, context)
            #expect(tree.root.bytes == reference.root, context)
            for index in 0..<size {
                let proof = tree.proof(at: index)
                guard proof?.index == UInt64(index), proof?.siblings.map(\.bytes) == reference.paths[index],
                    proof?.root(from: leaves[index])?.bytes == reference.root
                else {
                    Issue.record("the proof of leaf \(index) is wrong: \(context)")
                    return
                }
            }
            #expect(tree.proof(at: size) == nil, context)
            #expect(tree.proof(at: -1) == nil, context)
        }
    }

    @Test("The nodes on the way to the root are the reference's, from the leaf on")
    func nodes() throws {
        var generator = SeededGenerator(seed: runSeed &+ 20)
        for size in [1, 2, 3, 6, 9, 21] {
            let leaves = leaves(size, &generator)
            let tree = try #require(MerkleTree(leaves: leaves))
            for index in 0..<size {
                let proof = try #require(tree.proof(at: index))
                let siblings = proof.siblings.map(\.bytes)
                let expected = (0...siblings.count).map { count in
                    ReferenceMerkle.climb(
                        from: leaves[index].bytes, index: UInt64(index), siblings: Array(siblings.prefix(count)))
                }
                #expect(proof.nodes(from: leaves[index])?.map(\.bytes) == expected, "seed \(runSeed), \(size) leaves")
            }
        }
        let leaf = generator.digest()
        #expect(InclusionProof(index: 2, siblings: [leaf]).nodes(from: leaf) == nil)
        #expect(InclusionProof(index: 0, siblings: Array(repeating: leaf, count: 33)).nodes(from: leaf) == nil)
    }

    @Test("Trees of up to 4,096 leaves have the reference's root and its proofs of sampled leaves")
    func largeSizes() throws {
        var generator = SeededGenerator(seed: runSeed &+ 1)
        let drawn = (0..<3).map { _ in Int.random(in: 131...4096, using: &generator) }
        for size in [2049, 4095, 4096] + drawn {
            let context: Comment = "seed \(runSeed), \(size) leaves"
            let leaves = leaves(size, &generator)
            let tree = try #require(MerkleTree(leaves: leaves), context)
            let reference = ReferenceMerkle.tree(leaves.map(\.bytes))
            #expect(tree.root.bytes == reference.root, context)
            let sampled =
                [0, 1, size - 2, size - 1] + (0..<20).map { _ in Int.random(in: 0..<size, using: &generator) }
            for index in sampled {
                let proof = try #require(tree.proof(at: index), context)
                #expect(proof.siblings.map(\.bytes) == reference.paths[index], "leaf \(index), \(context)")
                #expect(proof.root(from: leaves[index]) == tree.root, "leaf \(index), \(context)")
            }
        }
    }

    @Test("A tree of one leaf is the leaf, and its proof is empty")
    func oneLeaf() throws {
        let leaf = SHA256.hash([1])
        let tree = try #require(MerkleTree(leaves: [leaf]))
        #expect(tree.root == leaf)
        #expect(tree.proof(at: 0) == InclusionProof(index: 0, siblings: []))
        #expect(tree.proof(at: 0)?.root(from: leaf) == leaf)
    }

    @Test("A tree without leaves is refused")
    func noLeaves() {
        #expect(MerkleTree(leaves: []) == nil)
        #expect(MerkleTree(keys: []) == nil)
    }

    @Test("A tree of more than 2^20 leaves is refused")
    func tooManyLeaves() {
        #expect(MerkleTree(leaves: [Digest](repeating: .zero, count: Limits.treeLeavesMax + 1)) == nil)
        #expect(MerkleTree(keys: [[1]], paddedTo: Limits.treeLeavesMax + 1) == nil)
    }

    @Test("Up to eight keys make a tree of eight leaves, more are padded to the next power of two")
    func padding() throws {
        for (count, expected) in [(1, 8), (7, 8), (8, 8), (9, 16), (16, 16), (17, 32), (33, 64)] {
            let keys = (0..<count).map { [UInt8($0), 1] }
            let tree = try #require(MerkleTree(keys: keys, random: .seeded(runSeed)))
            #expect(tree.leafCount == expected, "\(count) keys")
            for (index, key) in keys.enumerated() {
                #expect(
                    tree.proof(at: index)?.root(from: SHA256.hash(key)) == tree.root, "key \(index) of \(count)")
            }
        }
    }

    @Test("A chosen size is padded to, and the smallest is the number of keys")
    func chosenSize() {
        let keys: [[UInt8]] = [[1], [2], [3]]
        #expect(MerkleTree(keys: keys, paddedTo: 3)?.leafCount == 3)
        #expect(MerkleTree(keys: keys, paddedTo: 5)?.leafCount == 5)
        #expect(MerkleTree(keys: keys, paddedTo: 0)?.leafCount == 4)
        #expect(MerkleTree(keys: keys, paddedTo: 2)?.leafCount == 4)
        #expect(MerkleTree(keys: [[1]], paddedTo: 0)?.leafCount == 1)
    }

    @Test("Padding is random: the same keys give another root each time, and every padding leaf is another")
    func paddingIsRandom() throws {
        let keys: [[UInt8]] = [[1], [2]]
        let tree = try #require(MerkleTree(keys: keys))
        #expect(MerkleTree(keys: keys)?.root != tree.root)
        // The neighbour of an even leaf is the first sibling in its proof.
        let padding = [3, 2, 5, 4, 7, 6].compactMap { tree.proof(at: $0)?.siblings.first }
        #expect(padding.count == 6)
        #expect(Set(padding).count == 6)
        #expect(
            MerkleTree(keys: keys, random: .seeded(7))?.root == MerkleTree(keys: keys, random: .seeded(7))?.root)
    }
}

struct InclusionProofTests {
    private let leaves: [Digest]
    private let tree: MerkleTree
    private let proof: InclusionProof

    init() throws {
        var generator = SeededGenerator(seed: runSeed &+ 5)
        leaves = (0..<13).map { _ in generator.digest() }
        tree = try #require(MerkleTree(leaves: leaves))
        proof = try #require(tree.proof(at: 6))
    }

    @Test("Every index but the leaf's leads elsewhere")
    func wrongIndex() {
        for index in UInt64(0)..<16 {
            let root = InclusionProof(index: index, siblings: proof.siblings).root(from: leaves[6])
            #expect((root == tree.root) == (index == 6), "index \(index), seed \(runSeed)")
        }
    }

    @Test("A change of any bit of a sibling leads elsewhere")
    func changedSibling() throws {
        for level in proof.siblings.indices {
            for bit in stride(from: level, to: 256, by: 5) {
                var siblings = proof.siblings
                var bytes = siblings[level].bytes
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                siblings[level] = try #require(Digest(bytes))
                #expect(
                    InclusionProof(index: 6, siblings: siblings).root(from: leaves[6]) != tree.root,
                    "level \(level), bit \(bit), seed \(runSeed)")
            }
        }
    }

    @Test("Siblings in another order lead elsewhere")
    func swappedSiblings() {
        var siblings = proof.siblings
        siblings.swapAt(0, 1)
        #expect(InclusionProof(index: 6, siblings: siblings).root(from: leaves[6]) != tree.root)
    }

    @Test("A proof without its last sibling ends below the root")
    func missingSibling() {
        let short = InclusionProof(index: 6, siblings: proof.siblings.dropLast())
        #expect(short.root(from: leaves[6]) != tree.root)
        #expect(short.root(from: leaves[6]) != nil)
    }

    @Test("Another leaf leads elsewhere")
    func otherLeaf() {
        for (index, leaf) in leaves.enumerated() {
            #expect((proof.root(from: leaf) == tree.root) == (index == 6), "leaf \(index)")
        }
    }

    @Test("An index of 2^(number of siblings) or more is refused")
    func indexBeyond() {
        for index: UInt64 in [16, 16 + 6, 1 << 32, .max] {
            #expect(InclusionProof(index: index, siblings: proof.siblings).root(from: leaves[6]) == nil, "\(index)")
        }
        #expect(InclusionProof(index: 1, siblings: []).root(from: leaves[6]) == nil)
    }

    @Test("32 siblings are the most, 33 are refused")
    func tooManySiblings() {
        var generator = SeededGenerator(seed: runSeed &+ 6)
        let siblings = (0..<33).map { _ in generator.digest() }
        let index: UInt64 = 0xffff_fffe
        let most = InclusionProof(index: index, siblings: Array(siblings.prefix(32)))
        let reference = ReferenceMerkle.climb(
            from: leaves[0].bytes, index: index, siblings: siblings.prefix(32).map(\.bytes))
        #expect(most.root(from: leaves[0])?.bytes == reference, "seed \(runSeed)")
        #expect(InclusionProof(index: index, siblings: siblings).root(from: leaves[0]) == nil)
    }

    @Test("An index is valid below 2^levels and nowhere else")
    func validIndexes() {
        for levels in 0..<64 {
            let bound: UInt64 = 1 << UInt64(levels)
            #expect(RootHash.isValid(index: bound - 1, levels: levels), "\(levels) levels")
            #expect(!RootHash.isValid(index: bound, levels: levels), "\(levels) levels")
            #expect(!RootHash.isValid(index: .max, levels: levels), "\(levels) levels")
        }
        #expect(RootHash.isValid(index: .max, levels: 64))
        #expect(RootHash.isValid(index: .max, levels: 255))
    }
}

struct RootHashTests {
    @Test("Climbing agrees with the reference from any index, height and alignment")
    func climb() {
        var generator = SeededGenerator(seed: runSeed &+ 7)
        for iteration in 0..<150 {
            let count = Int.random(in: 0...32, using: &generator)
            let index = UInt64.random(in: 0..<(1 << UInt64(count)), using: &generator)
            let leaf = generator.digest()
            let siblings = (0..<count).map { _ in generator.bytes(32) }
            let shift = iteration % 16
            let bytes = [UInt8](repeating: 0, count: shift) + siblings.flatMap { $0 }
            let root = bytes.withUnsafeBytes { buffer in
                RootHash.climb(
                    from: leaf, index: index, siblings: buffer.baseAddress.map { $0 + shift }, count: count)
            }
            #expect(
                root.bytes == ReferenceMerkle.climb(from: leaf.bytes, index: index, siblings: siblings),
                "seed \(runSeed), iteration \(iteration), \(count) siblings, index \(index)")
        }
    }

    @Test("Only the selected positions are computed and written, each from its own proof")
    func selection() {
        var generator = SeededGenerator(seed: runSeed &+ 8)
        for iteration in 0..<40 {
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            let count = Int.random(in: 1...20, using: &generator)
            let keys = (0..<count).map { _ in generator.bytes(Int.random(in: 33...91, using: &generator)) }
            let heights = (0..<count).map { _ in Int.random(in: 0...5, using: &generator) }
            let siblings = heights.map { height in (0..<height).map { _ in generator.bytes(32) } }
            let indexes = heights.map { UInt64.random(in: 0..<(1 << UInt64($0)), using: &generator) }
            var selection = (0..<count).filter { _ in Bool.random(using: &generator) }
            selection.shuffle(using: &generator)
            let untouched = generator.digest()
            var roots = [Digest](repeating: untouched, count: count)

            // One byte in front keeps an empty area's address from being nil.
            let area: [UInt8] = [0] + keys.indices.flatMap { keys[$0] + siblings[$0].joined() }
            area.withUnsafeBytes { area in
                guard let base = area.baseAddress else { return }
                var offset = 1
                let proofs = keys.indices.map { position in
                    let key = UnsafeRawBufferPointer(start: base + offset, count: keys[position].count)
                    offset += key.count
                    let inclusionHashes = base + offset
                    offset += 32 * heights[position]
                    return BorrowedProof(
                        collaboration: UnsafeRawBufferPointer(start: nil, count: 0), publicKey: key,
                        publicKeyIndex: indexes[position], inclusionHashes: inclusionHashes,
                        inclusionHashCount: heights[position])
                }
                proofs.withUnsafeBufferPointer { proofs in
                    selection.withUnsafeBufferPointer { selection in
                        roots.withUnsafeMutableBufferPointer { roots in
                            RootHasher(capacity: selection.count).compute(of: proofs, selection: selection, into: roots)
                        }
                    }
                }
            }
            for position in 0..<count {
                let expected =
                    selection.contains(position)
                    ? ReferenceMerkle.climb(
                        from: ReferenceSHA256.hash(keys[position]), index: indexes[position],
                        siblings: siblings[position])
                    : untouched.bytes
                #expect(roots[position].bytes == expected, "position \(position), \(context)")
            }
        }
    }
}
