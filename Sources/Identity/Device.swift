package import Core
import Hashing
package import Signatures

/// A simulated device. It derives a key pair for each collaboration from one secret, so that nobody can link two
/// collaborations by a key.
package struct Device: Sendable {
    private let secret: [UInt8]

    package init(random: RandomSource = .system) {
        secret = random.bytes(32)
    }

    /// Derives the device's key pair in `collaboration`: HKDF-SHA256 of the secret, with the identifier in `info`.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package func key(in collaboration: CollaborationIdentifier) throws(ServiceError) -> PrivateKey {
        let info = Array("rootgate device key, P-256:".utf8) + collaboration.utf8
        return try PrivateKey(seed: KeyDerivation.hkdf(secret: secret, info: info, count: 48))
    }
}

/// How a device sends its public key; the leaf is the hash of exactly these bytes.
package enum KeyEncoding: String, CaseIterable, Sendable {
    case uncompressed
    case compressed
    case subjectPublicKeyInfo = "spki"

    /// Encodes the public key of `key`.
    package func bytes(of key: PrivateKey) -> [UInt8] {
        switch self {
        case .uncompressed: key.uncompressedPoint
        case .compressed: key.compressedPoint
        case .subjectPublicKeyInfo: PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: key.uncompressedPoint)
        }
    }
}
