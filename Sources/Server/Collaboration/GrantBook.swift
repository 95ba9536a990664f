import Collaboration
import Core
import Hashing
import Wire

/// Issues grants, and authenticates them with keys that survive restarts. It stores no grants: the participants'
/// records tell whether a grant is revoked.
final class GrantBook: GrantAuthority {
    private let keys: RotatingKeys
    private let clock: MonotonicClock
    /// How long a grant is valid.
    let validMilliseconds: UInt64
    /// Checkers of tags that no thread uses at the moment.
    private let idle = Lock<[IdleChecker]>([])

    /// Sendable without the compiler's proof: a thread takes it out of `idle` before it uses it.
    private final class IdleChecker: @unchecked Sendable {
        let checker: TagChecker

        init(_ checker: TagChecker) {
            self.checker = checker
        }
    }

    /// `clock`: grants expire by it, so it must not go back over a restart.
    init(validMilliseconds: UInt64, clock: MonotonicClock, keys: RotatingKeys) {
        self.keys = keys
        self.validMilliseconds = validMilliseconds
        self.clock = clock
    }

    /// The present time on the clock by which grants expire, in milliseconds.
    var now: UInt64 { clock.milliseconds }

    /// Appends a grant with this claim.
    func issue(_ claim: GrantClaim, to bytes: inout [UInt8]) {
        let start = bytes.count
        claim.append(to: &bytes)
        let authenticator = keys.current
        let tag = bytes.withUnsafeBytes { authenticator.tag(of: UnsafeRawBufferPointer(rebasing: $0[start...])) }
        tag.withUnsafeBytes { bytes.append(contentsOf: $0.prefix(GrantLayout.tagBytes)) }
        precondition(bytes.count - start == GrantLayout.byteCount, "a grant is not as long as its layout")
    }

    /// Whether the grant has the tag that one of the keys gives to its claim.
    func isGenuine(_ grant: AccessGrant) -> Bool {
        grant.bytes.withUnsafeBytes { bytes in
            keys.isGenuine(
                UnsafeRawBufferPointer(rebasing: bytes[..<GrantLayout.tag]),
                tag: UnsafeRawBufferPointer(rebasing: bytes[GrantLayout.tag...]))
        }
    }

    /// Calls `body` with an object that checks the tags of many grants at once. `body` must not keep it.
    ///
    /// Throws what `body` throws.
    func withTagChecker<R>(_ body: (TagChecker) throws(ServiceError) -> R) throws(ServiceError) -> R {
        let idleChecker =
            idle.withLock { $0.popLast() }
            ?? IdleChecker(TagChecker(keys, length: GrantLayout.tag, tagBytes: GrantLayout.tagBytes))
        defer { idle.withLock { $0.append(idleChecker) } }
        return try body(idleChecker.checker)
    }
}
