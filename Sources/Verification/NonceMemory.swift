package import Core
import Hashing

/// Remembers which device nonces were granted with which key, each for the window of its collaboration. It never
/// forgets a pair before its window ends. When the memory is full, or a holder has his share (see `MemoryShares`), it
/// refuses new pairs.
///
/// Pairs with similar windows are in a queue together, in the order in which they were spent: a pair is forgotten when
/// those before it are, at most an eighth of its window late. Each call does a bounded amount of work under the lock.
///
/// The memory is not stored. So an old nonce is accepted again after a restart, which is one of the reasons why
/// challenges are the default policy.
package final class NonceMemory: Sendable {
    /// Identifies a pair of key and nonce: 128 bits of SHA-256(leaf || SHA-256(nonce)).
    package struct Fingerprint: Hashable, BitwiseCopyable, Sendable {
        let value: UInt128

        /// `leaf`: SHA-256 of the key's bytes; `nonceDigest`: SHA-256 of the nonce.
        package init(leaf: Digest, nonceDigest: Digest) {
            value = SHA256.node(leaf, nonceDigest).withUnsafeBytes { $0.loadUnaligned(as: UInt128.self) }
        }
    }

    package enum Spending: Sendable {
        case spent
        case replayed
        case memoryFull
    }

    private let clock: MonotonicClock
    private let state: Lock<NoncePairs>

    /// `entriesMax`: the most pairs that are remembered at once, about 60 bytes each.
    package init(entriesMax: Int = 1 << 20, clock: MonotonicClock = .system, random: RandomSource = .system) {
        precondition(entriesMax >= 0, "the size of a memory is negative")
        self.clock = clock
        state = Lock(NoncePairs(max: entriesMax, hash: KeyedHash(random: random)))
    }

    /// Whether the pair was granted within its window.
    package func isSpent(_ fingerprint: Fingerprint) -> Bool {
        state.withLock { $0.isSpent(fingerprint.value, at: clock.milliseconds) }
    }

    /// Remembers the pair for `windowSeconds`. Of all callers with the same pair, exactly one gets `spent`.
    package func spend(
        _ fingerprint: Fingerprint, windowSeconds: UInt32, by holder: @autoclosure () -> MemoryHolder
    ) -> Spending {
        state.withLock { pairs in
            let now = clock.milliseconds
            guard !pairs.isSpent(fingerprint.value, at: now) else { return .replayed }
            let isAdded = pairs.add(fingerprint.value, at: now, windowSeconds: windowSeconds, by: holder())
            assert(!isAdded || pairs.isSpent(fingerprint.value, at: now), "a spent nonce was not remembered")
            return isAdded ? .spent : .memoryFull
        }
    }

    /// Number of pairs remembered now. Some of them may have expired.
    package var count: Int { state.withLock { $0.count } }
}
