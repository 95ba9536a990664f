import Core
import TestSupport
import Wire

/// The bytes that `append` appends.
func bytes(_ append: (inout [UInt8]) throws -> Void) rethrows -> [UInt8] {
    var bytes: [UInt8] = []
    try append(&bytes)
    return bytes
}

/// A little-endian field.
func field(_ value: some FixedWidthInteger) -> [UInt8] {
    (0..<value.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
}

func decode(_ operation: Wire.Operation, _ body: [UInt8]) throws -> Request {
    try body.withUnsafeBytes { try Request.decode(operation: operation.rawValue, body: $0) }
}

/// A batch's proof as a value, copied out of `body`.
func copy(_ batch: ProofBatch, at index: Int, in body: [UInt8]) -> (
    collaboration: [UInt8], format: UInt8, index: UInt64, key: [UInt8], siblings: [UInt8], signature: [UInt8],
    data: [UInt8]
) {
    body.withUnsafeBytes { bytes in
        let proof = batch.proof(at: index, in: bytes)
        let siblings = UnsafeRawBufferPointer(start: proof.inclusionHashes, count: 32 * proof.inclusionHashCount)
        return (
            Array(proof.collaboration), proof.signatureFormat, proof.publicKeyIndex, Array(proof.publicKey),
            Array(siblings), Array(proof.signature), Array(proof.data)
        )
    }
}

extension SeededGenerator {
    mutating func collaboration() -> CollaborationIdentifier? {
        let count = Int.random(in: 1...128, using: &self)
        return CollaborationIdentifier(utf8: (0..<count).map { _ in UInt8.random(in: 0x20...0x7e, using: &self) })
    }

    mutating func digests(_ most: Int) -> [Digest] {
        (0..<Int.random(in: 0...most, using: &self)).map { _ in digest() }
    }

    mutating func proof() -> SignedIdentityProof {
        SignedIdentityProof(
            publicKey: bytes(Int.random(in: 0...255, using: &self)), publicKeyIndex: next(),
            inclusionHashes: digests(40), signature: bytes(Int.random(in: 0...255, using: &self)),
            signatureFormat: Bool.random(using: &self) ? .der : .raw,
            data: bytes(Int.random(in: 0...300, using: &self)))
    }
}
