package import Core
package import Hashing

/// The secret from which all keys of the service are derived: the present generation, and maybe another one. What the
/// present one authenticates is genuine, and so is what the other one does. Only the present one makes tags.
///
/// The other one is the one before the present one, or the next one. Services that share the secret get the next one
/// before any of them uses it, so that none of them takes what another one makes for forged.
package struct RootSecret: Sendable {
    package let current: SecretGeneration
    /// The generation before; `nil` when there is none, or when the next one is prepared.
    package let previous: SecretGeneration?
    /// The generation that is prepared: accepted, and not used yet. There is none beside one before.
    package let next: SecretGeneration?

    package init(current: SecretGeneration, previous: SecretGeneration? = nil) {
        self.current = current
        self.previous = previous
        next = nil
    }

    package init(current: SecretGeneration, next: SecretGeneration) {
        self.current = current
        previous = nil
        self.next = next
    }

    /// How long the generation before the present one is valid when no service uses it any more, in milliseconds: as
    /// long as the longest validity of a challenge or a grant that an operator can choose.
    package static let overlapMilliseconds = UInt64(Limits.validitySecondsMax) * 1000

    /// How long the services may take until all of them use a generation that was prepared, in milliseconds.
    package static let spreadMilliseconds = UInt64(Limits.secretSpreadSeconds) * 1000

    /// Every generation whose tags are genuine, the present one first.
    package var generations: [SecretGeneration] { [current, previous, next].compactMap { $0 } }

    /// When everything has expired that the generation before the present one authenticated (milliseconds since 1970).
    package var previousEnd: UInt64 {
        let (end, isBeyond) = current.inUseAt.addingReportingOverflow(RootSecret.overlapMilliseconds)
        return isBeyond ? .max : end
    }

    /// Whether the generation before is no longer needed at that time (milliseconds since 1970), or there is none.
    package func isPreviousSettled(at milliseconds: UInt64) -> Bool {
        previous == nil || milliseconds >= previousEnd
    }

    /// The same without the generation before, if that one is no longer needed. The next one always stays.
    package func settled(at milliseconds: UInt64) -> RootSecret {
        previous != nil && isPreviousSettled(at: milliseconds) ? RootSecret(current: current) : self
    }

    /// Adds a fresh generation, which is used at once. The present one becomes the one before, and the one before it is
    /// dropped. No next one may be prepared.
    package func rotated(at milliseconds: UInt64, random: RandomSource = .system) -> RootSecret {
        precondition(next == nil, "a rotation would drop the generation that is prepared")
        return RootSecret(current: SecretGeneration(at: milliseconds, random: random), previous: current)
    }

    /// Adds a fresh generation as the next one. The one before the present one is dropped. No next one may be prepared.
    package func prepared(at milliseconds: UInt64, random: RandomSource = .system) -> RootSecret {
        precondition(next == nil, "a generation is prepared already")
        return RootSecret(current: current, next: SecretGeneration(at: milliseconds, random: random))
    }

    /// The next generation becomes the present one, and the present one becomes the one before. That one is valid until
    /// the overlap has passed since all services use the next one: they get `spreadMilliseconds` for it. Returns `nil`
    /// when no next one is prepared.
    package func usingNext(at milliseconds: UInt64) -> RootSecret? {
        next.map { next in
            RootSecret(current: next.inUse(at: milliseconds + RootSecret.spreadMilliseconds), previous: current)
        }
    }

    /// Derives the keys of a purpose.
    ///
    /// Throws `internalFault` when libcrypto can't do it.
    package func keys(for purpose: SecretPurpose) throws(ServiceError) -> KeyPair {
        var other: MessageAuthenticator?
        if let generation = previous ?? next { other = try generation.authenticator(for: purpose) }
        return KeyPair(current: try current.authenticator(for: purpose), other: other)
    }
}
