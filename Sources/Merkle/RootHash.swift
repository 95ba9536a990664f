package import Core
import Hashing

/// From proofs to root hashes. Apple, "Adding custom collaboration to your app",
/// section "Verify participant access".
package enum RootHash {
    /// Whether `index` can be a leaf's position in a tree `levels` high: index < 2^levels.
    @inlinable
    package static func isValid(index: UInt64, levels: Int) -> Bool {
        levels >= 64 || index >> UInt64(levels) == 0
    }

    /// The root hash that each selected proof leads to.
    ///
    /// - `proofs`: shapes checked (at most 32 siblings, the index fits).
    /// - `selection`: positions in `proofs`; only these are read.
    /// - `roots`: as long as `proofs`; only the selected positions are written.
    package static func compute(
        of proofs: UnsafeBufferPointer<BorrowedProof>, selection: UnsafeBufferPointer<Int>,
        into roots: UnsafeMutableBufferPointer<Digest>
    ) {
        for position in selection {
            let proof = proofs[position]
            roots[position] = climb(
                from: SHA256.hash(proof.publicKey), index: proof.publicKeyIndex,
                siblings: proof.inclusionHashes, count: proof.inclusionHashCount)
        }
    }

    /// The root above `leaf`: at an even position the local digest is on the left, at an odd one on the
    /// right, and the position halves with every level.
    ///
    /// `siblings`: `count` digests of 32 bytes, leaf level first, at any alignment.
    package static func climb(
        from leaf: Digest, index: UInt64, siblings: UnsafeRawPointer?, count: Int
    ) -> Digest {
        withUnsafeTemporaryAllocation(byteCount: 2 * Digest.byteCount, alignment: 16) { children in
            guard count > 0, let siblings, let left = children.baseAddress else { return leaf }
            let right = left + Digest.byteCount
            var local = leaf
            var index = index
            for level in 0..<count {
                let sibling = siblings + level * Digest.byteCount
                let isRight = index & 1 == 1
                (isRight ? left : right).copyMemory(from: sibling, byteCount: Digest.byteCount)
                local.store(to: isRight ? right : left)
                local = SHA256.node(at: left)
                index >>= 1
            }
            return local
        }
    }
}
