package import Core
package import Hashing

/// The secret from which all keys of the service are derived: the present generation, and maybe the one before it. What
/// the present one authenticates is genuine, and what the one before it authenticated still is.
package struct RootSecret: Sendable {
    package let current: SecretGeneration
    package let previous: SecretGeneration?

    package init(current: SecretGeneration, previous: SecretGeneration? = nil) {
        self.current = current
        self.previous = previous
    }

    /// How long the generation before the present one is valid after the rotation, in milliseconds: as long as the
    /// longest validity of a challenge or a grant that an operator can choose.
    package static let overlapMilliseconds = UInt64(Limits.validitySecondsMax) * 1000

    /// Whether the generation before is no longer needed at that time (milliseconds since 1970): everything that it
    /// authenticated has expired.
    package func isPreviousSettled(at milliseconds: UInt64) -> Bool {
        previous == nil
            || milliseconds >= current.madeAt && milliseconds - current.madeAt >= RootSecret.overlapMilliseconds
    }

    /// The same without the generation before, if that one is no longer needed.
    package func settled(at milliseconds: UInt64) -> RootSecret {
        isPreviousSettled(at: milliseconds) ? RootSecret(current: current) : self
    }

    /// Adds a fresh generation. The present one becomes the one before.
    package func rotated(at milliseconds: UInt64, random: RandomSource = .system) -> RootSecret {
        RootSecret(current: SecretGeneration(at: milliseconds, random: random), previous: current)
    }

    /// Derives the keys of a purpose.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package func keys(for purpose: SecretPurpose) throws(ServiceError) -> KeyPair {
        var other: MessageAuthenticator?
        if let previous { other = try previous.authenticator(for: purpose) }
        return KeyPair(current: try current.authenticator(for: purpose), other: other)
    }
}
