package import Core
package import Hashing

/// Computes root hashes from proofs, as described in Apple, "Adding custom collaboration to your app", section "Verify
/// participant access".
package enum RootHash {
    /// Whether `index` can be a leaf's position in a tree of `levels` levels below the root: index < 2^levels.
    @inlinable
    package static func isValid(index: UInt64, levels: Int) -> Bool {
        levels >= 64 || index >> UInt64(levels) == 0
    }

    /// Computes the root above `leaf`. At an even position the local digest is on the left, at an odd one on the right.
    /// The position halves with every level.
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

/// Computes the roots of whole batches. It hashes the leaves of all proofs first, then one level after the other, so
/// that a kernel hashes for many proofs in one step. Proofs in a batch may have different depths.
///
/// A hasher has its own scratch memory, so it serves one thread at a time.
package final class RootHasher {
    private let hashing: BatchHashing
    private let capacity: Int
    private let positions: ScratchBuffer<Int>
    /// The position of the proof to which the entry at the same place of the buffers below belongs.
    private let owners: ScratchBuffer<Int>
    private let messages: ScratchBuffer<UnsafePointer<UInt8>?>
    private let childBytes: ScratchBuffer<UInt8>
    private let digests: ScratchBuffer<Digest>

    /// `capacity`: the most proofs in a batch.
    package init(capacity: Int, hashing: BatchHashing = .standard) {
        self.hashing = hashing
        self.capacity = capacity
        positions = ScratchBuffer(repeating: 0, count: capacity)
        owners = ScratchBuffer(repeating: 0, count: capacity)
        messages = ScratchBuffer(repeating: nil, count: capacity)
        childBytes = ScratchBuffer(repeating: 0, count: capacity * 2 * Digest.byteCount, alignment: 64)
        digests = ScratchBuffer(repeating: .zero, count: capacity)
    }

    /// Computes the root hash of each selected proof.
    ///
    /// - `proofs`: their shapes were checked (at most 32 siblings, the index fits).
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

    /// Hashes a message for each selected position. Messages of equal length are hashed together.
    package func hash(
        _ selection: UnsafeBufferPointer<Int>, into results: UnsafeMutableBufferPointer<Digest>,
        of message: (Int) -> UnsafeRawBufferPointer
    ) {
        precondition(selection.count <= capacity, "a batch has more proofs than its capacity")
        // The first `left` of `positions` are those whose messages are not hashed yet.
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
            // The first message has this length. So each round hashes at least one message, and the loop ends.
            assert(taken > 0 && taken + kept == left, "a message was lost while they were sorted by length")
            hashing.hash(UnsafeBufferPointer(messages.prefix(taken)), length: length, into: digests.baseAddress)
            for index in 0..<taken { results[owners[index]] = digests[index] }
            left = kept
        }
    }

    /// Computes the next level of every proof that has one. Returns false when no proof has one.
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
