import Collaboration
import Core
import Hashing
import Synchronization

/// Issues grants and tells genuine ones, under a key that lives as long as this object. Keeps no record of them: what
/// they are worth after that, the participants' records say.
final class GrantBook: Sendable {
    private let authenticator: MessageAuthenticator
    private let clock: MonotonicClock
    /// How long a grant is valid.
    let validMilliseconds: UInt64
    /// For batches.
    private let idle = Mutex<[Lent]>([])

    /// Sendable without the compiler's proof: taken out of the pool by one thread at a time.
    private final class Lent: @unchecked Sendable {
        let authenticator: BatchAuthenticator

        init(_ authenticator: BatchAuthenticator) {
            self.authenticator = authenticator
        }
    }

    init(validMilliseconds: UInt64, clock: MonotonicClock, random: RandomSource) {
        authenticator = MessageAuthenticator(key: random.bytes(32))
        self.validMilliseconds = validMilliseconds
        self.clock = clock
    }

    /// The time that grants are judged by.
    var now: UInt64 { clock.milliseconds }

    /// Appends a grant with this claim, 112 bytes.
    func issue(_ claim: GrantClaim, to bytes: inout [UInt8]) {
        let start = bytes.count
        claim.append(to: &bytes)
        let tag = bytes.withUnsafeBytes { authenticator.tag(of: UnsafeRawBufferPointer(rebasing: $0[start...])) }
        tag.withUnsafeBytes { bytes.append(contentsOf: $0.prefix(AccessGrant.tagBytes)) }
    }

    /// What a genuine grant says that has not expired, or why it isn't one.
    func open(_ grant: AccessGrant) -> Result<GrantClaim, GrantRefusal> {
        grant.bytes.withUnsafeBytes { bytes in
            let signed = UnsafeRawBufferPointer(rebasing: bytes[..<AccessGrant.signedBytes])
            guard isGenuine(bytes, tag: authenticator.tag(of: signed)), let claim = GrantClaim(signed) else {
                return .failure(GrantRefusal(.forged))
            }
            return now <= claim.expiry ? .success(claim) : .failure(GrantRefusal(.expired))
        }
    }

    /// Whether a grant's bytes end in `tag`.
    func isGenuine(_ grant: UnsafeRawBufferPointer, tag: Digest) -> Bool {
        tag.withUnsafeBytes { tag in
            guard let given = grant.baseAddress, let expected = tag.baseAddress else { return false }
            return equalInConstantTime(given + AccessGrant.signedBytes, expected, count: AccessGrant.tagBytes)
        }
    }

    /// Lends what computes many tags at once.
    func withBatchAuthenticator<R>(_ body: (BatchAuthenticator) throws(ServiceError) -> R) throws(ServiceError) -> R {
        let lent =
            idle.withLock { $0.popLast() }
            ?? Lent(BatchAuthenticator(authenticator, length: AccessGrant.signedBytes))
        defer { idle.withLock { $0.append(lent) } }
        return try body(lent.authenticator)
    }
}
