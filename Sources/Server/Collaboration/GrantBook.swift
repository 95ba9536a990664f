import Collaboration
import Core
import Hashing
import Synchronization
import Wire

/// Issues grants, and recognizes those that it issued, under a key that lives as long as this object. It keeps no
/// record of them: the participants' records say whether a grant is revoked.
final class GrantBook: GrantAuthority {
    private let authenticator: MessageAuthenticator
    private let clock: MonotonicClock
    /// How long a grant is valid.
    let validMilliseconds: UInt64
    /// Authenticators of batches that no thread uses at the moment.
    private let idle = Mutex<[Lent]>([])

    /// Sendable without the compiler's proof: taken out of the pool by one thread at a time.
    private final class Lent: @unchecked Sendable {
        let authenticator: BatchAuthenticator

        init(_ authenticator: BatchAuthenticator) {
            self.authenticator = authenticator
        }
    }

    /// `random` gives the key.
    init(validMilliseconds: UInt64, clock: MonotonicClock, random: RandomSource) {
        authenticator = MessageAuthenticator(key: random.bytes(32))
        self.validMilliseconds = validMilliseconds
        self.clock = clock
    }

    /// Milliseconds of the clock by which grants expire.
    var now: UInt64 { clock.milliseconds }

    /// Appends a grant with this claim.
    func issue(_ claim: GrantClaim, to bytes: inout [UInt8]) {
        let start = bytes.count
        claim.append(to: &bytes)
        let tag = bytes.withUnsafeBytes { authenticator.tag(of: UnsafeRawBufferPointer(rebasing: $0[start...])) }
        tag.withUnsafeBytes { bytes.append(contentsOf: $0.prefix(GrantLayout.tagBytes)) }
        precondition(bytes.count - start == GrantLayout.byteCount, "a grant is not as long as its layout")
    }

    /// Whether the tag of the grant is right.
    func isGenuine(_ grant: AccessGrant) -> Bool {
        grant.bytes.withUnsafeBytes { bytes in
            let signed = UnsafeRawBufferPointer(rebasing: bytes[..<GrantLayout.tag])
            return isGenuine(bytes, tag: authenticator.tag(of: signed))
        }
    }

    /// Whether the grant's bytes end in the first bytes of `tag`, which was computed for them. Takes the same time
    /// for every grant.
    func isGenuine(_ grant: UnsafeRawBufferPointer, tag: Digest) -> Bool {
        precondition(grant.count == GrantLayout.byteCount, "a grant is cut short")
        return tag.withUnsafeBytes { tag in
            guard let given = grant.baseAddress, let expected = tag.baseAddress else { return false }
            return equalInConstantTime(given + GrantLayout.tag, expected, count: GrantLayout.tagBytes)
        }
    }

    /// Lends an object that computes many tags at once.
    func withBatchAuthenticator<R>(_ body: (BatchAuthenticator) throws(ServiceError) -> R) throws(ServiceError) -> R {
        let lent =
            idle.withLock { $0.popLast() } ?? Lent(BatchAuthenticator(authenticator, length: GrantLayout.tag))
        defer { idle.withLock { $0.append(lent) } }
        return try body(lent.authenticator)
    }
}
