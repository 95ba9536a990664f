public import Core
import Hashing

/// What the service stores of an API key: the SHA-256 of 32 random bytes and the secret. The secret has 32 random bytes
/// too, so no slow hash is needed: nobody can try all secrets.
public struct KeyHash: Hashable, Sendable, Codable {
    public let identifier: KeyIdentifier
    /// 32 random bytes, different for every key.
    public let salt: Digest
    /// SHA-256 of the salt and the secret.
    public let hash: Digest

    /// Hashes a key with a fresh salt.
    public init(_ key: APIKey, random: RandomSource = .system) {
        self.init(key, salt: Digest(random.bytes(Digest.byteCount)) ?? .zero)
    }

    init(_ key: APIKey, salt: Digest) {
        identifier = key.identifier
        self.salt = salt
        hash = KeyHash.hash(of: key, salt: salt)
    }

    private static func hash(of key: APIKey, salt: Digest) -> Digest { SHA256.hash(salt.bytes + key.secret) }

    /// Whether this is the hash of the key. The time does not depend on where the hashes differ.
    package func matches(_ key: APIKey) -> Bool {
        let given = KeyHash.hash(of: key, salt: salt)
        let isEqual = given.withUnsafeBytes { given in
            hash.withUnsafeBytes { stored in
                guard let given = given.baseAddress, let stored = stored.baseAddress else { return false }
                return equalInConstantTime(given, stored, count: Digest.byteCount)
            }
        }
        return isEqual && identifier == key.identifier
    }

    /// A hash that no key has, for keys that are unknown: looking for one takes as long as refusing a known one.
    static let ofNoKey = KeyHash(APIKey.random(), salt: .zero)
}
