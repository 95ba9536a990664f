import Core

/// Proofs as bytes, one behind the other. A caller makes a proof of them just before it verifies it, as a backend does
/// with a request that it has received. The parts of a proof that was made long before would have left the processor's
/// caches.
struct ReceivedProofs {
    /// A proof without its bytes, and where these are.
    private struct Head {
        let start: Int
        let keyCount: Int
        let hashesCount: Int
        let signatureCount: Int
        let dataCount: Int
        let index: UInt64
        let format: SignatureFormat
    }

    private var heads: [Head] = []
    private var bytes: [UInt8] = []

    init(_ proofs: [SignedIdentityProof]) {
        heads.reserveCapacity(proofs.count)
        for proof in proofs {
            heads.append(
                Head(
                    start: bytes.count, keyCount: proof.publicKey.count, hashesCount: proof.inclusionHashes.count,
                    signatureCount: proof.signature.count, dataCount: proof.data.count, index: proof.publicKeyIndex,
                    format: proof.signatureFormat))
            bytes += proof.publicKey
            for digest in proof.inclusionHashes { bytes += digest.bytes }
            bytes += proof.signature
            bytes += proof.data
        }
    }

    var count: Int { heads.count }

    subscript(position: Int) -> SignedIdentityProof {
        let head = heads[position]
        return bytes.withUnsafeBytes { all in
            var next = head.start
            func take(_ count: Int) -> UnsafeRawBufferPointer {
                defer { next += count }
                return UnsafeRawBufferPointer(rebasing: all[next..<next + count])
            }
            let publicKey = Array(take(head.keyCount))
            let hashes = take(head.hashesCount * Digest.byteCount)
            let inclusionHashes = stride(from: 0, to: hashes.count, by: Digest.byteCount).compactMap { offset in
                Digest(hashes[offset..<offset + Digest.byteCount])
            }
            return SignedIdentityProof(
                publicKey: publicKey, publicKeyIndex: head.index, inclusionHashes: inclusionHashes,
                signature: Array(take(head.signatureCount)), signatureFormat: head.format,
                data: Array(take(head.dataCount)))
        }
    }
}
