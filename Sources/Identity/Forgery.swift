package import Core
import Hashing
package import Signatures

/// Ways to forge a proof from a genuine one, each with the verdict that it must get in a collaboration with the
/// challenge policy. Demo, load generator and tests use this one table.
package enum Forgery: String, CaseIterable, Sendable {
    case tooManySiblings = "33 siblings"
    case tooMuchData = "data of 4,097 bytes"
    case hybridKey = "hybrid key encoding"
    case truncatedKey = "key cut short"
    case indexBeyondTree = "index beyond the tree"
    case trailingByteInSignature = "signature with a trailing byte"
    case indefiniteLengthSignature = "signature in BER"
    case foreignChallenge = "challenge of our own making"
    case changedChallenge = "challenge with one bit changed"
    case changedSibling = "sibling with one bit changed"
    case wrongIndex = "index of another leaf"
    case otherKey = "key of a stranger"
    case changedSignature = "signature with one bit changed"
    case otherSigner = "signature by a stranger"
    case otherData = "signature over other data"

    /// The verdict that the gate must give.
    package var verdict: Verdict {
        switch self {
        case .tooManySiblings, .tooMuchData: .malformed
        case .hybridKey, .truncatedKey: .badKey
        case .indexBeyondTree: .badIndex
        case .trailingByteInSignature, .indefiniteLengthSignature: .badSignatureEncoding
        case .foreignChallenge, .changedChallenge: .challengeForged
        case .changedSibling, .wrongIndex, .otherKey: .notParticipant
        case .changedSignature, .otherSigner, .otherData: .badSignature
        }
    }

    /// Forges a proof from `genuine`, which must have a DER signature, an X9.63 key and at least one sibling. It must
    /// not be a proof of `stranger`'s.
    ///
    /// Throws `internalFault` when libcrypto can't sign.
    package func spoil(
        _ genuine: SignedIdentityProof, stranger: PrivateKey, random: RandomSource = .system
    ) throws(ServiceError) -> SignedIdentityProof {
        var proof = genuine
        switch self {
        case .tooManySiblings:
            proof.inclusionHashes += Array(repeating: .zero, count: 33 - proof.inclusionHashes.count)
        case .tooMuchData:
            proof.data += [UInt8](repeating: 0, count: Limits.signedDataBytesMax + 1 - proof.data.count)
        case .hybridKey: proof.publicKey[0] = 0x06
        case .truncatedKey: proof.publicKey.removeLast()
        case .indexBeyondTree: proof.publicKeyIndex += 1 << UInt64(proof.inclusionHashes.count)
        case .trailingByteInSignature: proof.signature.append(0)
        case .indefiniteLengthSignature:
            proof.signature[1] = 0x80
            proof.signature += [0, 0]
        case .foreignChallenge:
            proof.data = random.bytes(genuine.data.count)
        case .changedChallenge: proof.data[9] ^= 1
        case .changedSibling:
            var bytes = proof.inclusionHashes[0].bytes
            bytes[31] ^= 1
            proof.inclusionHashes[0] = Digest(bytes) ?? .zero
        case .wrongIndex: proof.publicKeyIndex ^= 1
        case .otherKey: proof.publicKey = stranger.uncompressedPoint
        case .changedSignature: proof.signature[proof.signature.count - 1] ^= 1
        case .otherSigner: proof.signature = SignatureEncoding.der(try stranger.sign(SHA256.hash(genuine.data)))
        case .otherData:
            proof.signature = SignatureEncoding.der(try stranger.sign(SHA256.hash(genuine.data + [0])))
        }
        return proof
    }
}
