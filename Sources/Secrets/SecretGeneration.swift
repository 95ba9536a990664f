package import Core
package import Hashing
import Platform

/// One generation of the root secret: 32 random bytes that never leave their memory, a name and a time.
package struct SecretGeneration: Sendable {
    /// Bytes of the secret.
    static let secretBytes = 32

    /// The name of the generation: random, and no secret.
    package let identifier: UInt64
    /// From when on every service uses it, in milliseconds since 1970. That is when it was made, unless it was prepared
    /// before it was used. While it is only prepared, the time means nothing.
    package let inUseAt: UInt64
    let secret: SecretMemory

    /// Makes a fresh generation, which is in use from that time on.
    package init(at milliseconds: UInt64, random: RandomSource = .system) {
        let secret = SecretMemory(count: SecretGeneration.secretBytes)
        random.fill(secret.bytes)
        self.init(
            identifier: random.bytes(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }, inUseAt: milliseconds,
            secret: secret)
    }

    init(identifier: UInt64, inUseAt: UInt64, secret: SecretMemory) {
        precondition(secret.count == SecretGeneration.secretBytes, "a secret has another length")
        self.identifier = identifier
        self.inUseAt = inUseAt
        self.secret = secret
    }

    /// The same generation, in use from that time on.
    func inUse(at milliseconds: UInt64) -> SecretGeneration {
        SecretGeneration(identifier: identifier, inUseAt: milliseconds, secret: secret)
    }

    /// The name in hexadecimal, 16 characters.
    package var name: String { withUnsafeBytes(of: identifier.littleEndian) { Array($0) }.hexadecimal }

    /// Derives the authenticator of a purpose, by HKDF-SHA256 with the purpose's label.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package func authenticator(for purpose: SecretPurpose) throws(ServiceError) -> MessageAuthenticator {
        MessageAuthenticator(key: try KeyDerivation.key(from: secret, info: purpose.rawValue))
    }
}
