import Collaboration
import Core
import Hashing
import Synchronization
import Wire

/// Issues grants, and authenticates them with a key that exists only in this object. It stores no grants: the
/// participants' records tell whether a grant is revoked.
final class GrantBook: GrantAuthority {
    private let authenticator: MessageAuthenticator
    private let clock: MonotonicClock
    /// How long a grant is valid.
    let validMilliseconds: UInt64
    /// Batch authenticators that no thread uses at the moment.
    private let idle = Mutex<[Lent]>([])

    /// Sendable without the compiler's proof: a thread takes it out of `idle` before it uses it.
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

    /// The present time on the clock by which grants expire, in milliseconds.
    var now: UInt64 { clock.milliseconds }

    /// Appends a grant with this claim.
    func issue(_ claim: GrantClaim, to bytes: inout [UInt8]) {
        let start = bytes.count
        claim.append(to: &bytes)
        let tag = bytes.withUnsafeBytes { authenticator.tag(of: UnsafeRawBufferPointer(rebasing: $0[start...])) }
        tag.withUnsafeBytes { bytes.append(contentsOf: $0.prefix(GrantLayout.tagBytes)) }
        precondition(bytes.count - start == GrantLayout.byteCount, "a grant is not as long as its layout")
    }

    /// Whether the grant has the tag that this object gives to its claim.
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

    /// Calls `body` with an object that computes many tags at once. `body` must not keep it.
    ///
    /// Throws what `body` throws.
    func withBatchAuthenticator<R>(_ body: (BatchAuthenticator) throws(ServiceError) -> R) throws(ServiceError) -> R {
        let lent =
            idle.withLock { $0.popLast() } ?? Lent(BatchAuthenticator(authenticator, length: GrantLayout.tag))
        defer { idle.withLock { $0.append(lent) } }
        return try body(lent.authenticator)
    }
}
