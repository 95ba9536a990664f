package import Core
package import Hashing

/// From proofs to root hashes. Apple, "Adding custom collaboration to your app",
/// section "Verify participant access".
package enum RootHash {
    /// Whether `index` can be a leaf's position in a tree `levels` high: index < 2^levels.
    @inlinable
    package static func isValid(index: UInt64, levels: Int) -> Bool {
        levels >= 64 || index >> UInt64(levels) == 0
    }

    /// The root above `leaf`: at an even position the local digest is on the left, at an odd one on the
    /// right, and the position halves with every level.
    ///
    /// `siblings`: `count` digests of 32 bytes, leaf level first, at any alignment.
    package static func climb(
        from leaf: Digest, index: UInt64, siblings: UnsafeRawPointer?, count: Int
    ) -> Digest {
        withUnsafeTemporaryAllocation(byteCount: 2 * Digest.byteCount, alignment: 16) { children in
            guard count > 0, let siblings, let pair = children.baseAddress else { return leaf }
            var local = leaf
            for level in 0..<count {
                pairUp(local, siblings + level * Digest.byteCount, isRight: index >> UInt64(level) & 1 == 1, at: pair)
                local = SHA256.node(at: pair)
            }
            return local
        }
    }

    /// Writes the 64 bytes below the next node to `pair`.
    @inline(__always)
    fileprivate static func pairUp(
        _ local: Digest, _ sibling: UnsafeRawPointer, isRight: Bool, at pair: UnsafeMutableRawPointer
    ) {
        local.store(to: pair + (isRight ? Digest.byteCount : 0))
        Digest(at: sibling).store(to: pair + (isRight ? 0 : Digest.byteCount))
    }
}

/// Computes the roots of whole batches: the leaves of all proofs first, then level after level, so that a kernel hashes
/// for many proofs in one step. A batch may have proofs of different depths.
///
/// Works in memory of its own, so one serves one thread at a time.
package final class RootHasher {
    private let hashing: BatchHashing
    private let capacity: Int
    private let positions: ScratchBuffer<Int>
    /// The position of the proof whose message or node is in the same place of the buffers below.
    private let owners: ScratchBuffer<Int>
    private let messages: ScratchBuffer<UnsafePointer<UInt8>?>
    private let childBytes: ScratchBuffer<UInt8>
    private let digests: ScratchBuffer<Digest>

    /// `capacity`: proofs in a batch, at most.
    package init(capacity: Int, hashing: BatchHashing = .standard) {
        self.hashing = hashing
        self.capacity = capacity
        positions = ScratchBuffer(repeating: 0, count: capacity)
        owners = ScratchBuffer(repeating: 0, count: capacity)
        messages = ScratchBuffer(repeating: nil, count: capacity)
        childBytes = ScratchBuffer(repeating: 0, count: capacity * 2 * Digest.byteCount, alignment: 64)
        digests = ScratchBuffer(repeating: .zero, count: capacity)
    }

    /// The root hash that each selected proof leads to.
    ///
    /// - `proofs`: shapes checked (at most 32 siblings, the index fits).
    /// - `selection`: positions in `proofs`, at most `capacity`; only these are read.
    /// - `roots`: as long as `proofs`; only the selected positions are written.
    package func compute(
        of proofs: UnsafeBufferPointer<BorrowedProof>, selection: UnsafeBufferPointer<Int>,
        into roots: UnsafeMutableBufferPointer<Digest>
    ) {
        precondition(roots.count >= proofs.count, "there is no room for every root")
        hash(selection, into: roots) { proofs[$0].publicKey }
        var level = 0
        while climb(proofs, selection, roots, level) { level += 1 }
    }

    /// The SHA-256 of a message for each selected position, those of equal length together.
    package func hash(
        _ selection: UnsafeBufferPointer<Int>, into results: UnsafeMutableBufferPointer<Digest>,
        of message: (Int) -> UnsafeRawBufferPointer
    ) {
        precondition(selection.count <= capacity, "a batch has more proofs than its capacity")
        // The positions whose messages are not hashed yet are the first `left` of `positions`.
        var left = selection.count
        for index in 0..<left { positions[index] = selection[index] }
        while left > 0 {
            let length = message(positions[0]).count
            var taken = 0
            var kept = 0
            for index in 0..<left {
                let position = positions[index]
                let bytes = message(position)
                if bytes.count == length {
                    messages[taken] = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                    owners[taken] = position
                    taken += 1
                } else {
                    positions[kept] = position
                    kept += 1
                }
            }
            // The first message has the length, so each round takes at least one and the loop ends.
            assert(taken > 0 && taken + kept == left, "a message was lost while they were sorted by length")
            hashing.hash(UnsafeBufferPointer(messages.prefix(taken)), length: length, into: digests.baseAddress)
            for index in 0..<taken { results[owners[index]] = digests[index] }
            left = kept
        }
    }

    /// Computes the next level of every proof that has one; false when none has.
    private func climb(
        _ proofs: UnsafeBufferPointer<BorrowedProof>, _ selection: UnsafeBufferPointer<Int>,
        _ roots: UnsafeMutableBufferPointer<Digest>, _ level: Int
    ) -> Bool {
        let children = UnsafeMutableRawPointer(childBytes.baseAddress)
        var count = 0
        for position in selection where proofs[position].inclusionHashCount > level {
            let proof = proofs[position]
            RootHash.pairUp(
                roots[position], proof.inclusionHashes + level * Digest.byteCount,
                isRight: proof.publicKeyIndex >> UInt64(level) & 1 == 1, at: children + count * 2 * Digest.byteCount)
            owners[count] = position
            count += 1
        }
        guard count > 0 else { return false }
        assert(level < Limits.inclusionHashesMax && count <= capacity, "a proof's shape was not checked")
        hashing.nodes(at: children, count: count, into: digests.baseAddress)
        for index in 0..<count { roots[owners[index]] = digests[index] }
        return true
    }
}
