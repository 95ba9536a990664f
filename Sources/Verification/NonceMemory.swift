package import Core
import Hashing
import Synchronization

/// Remembers which device nonces were granted with which key, each for the window of its collaboration. When the memory
/// is full it refuses new pairs. It never forgets a pair before its window ends.
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

    private struct State {
        /// When each remembered pair may be forgotten, in milliseconds.
        var expiries: [UInt128: UInt64] = [:]
        /// The pairs by the second in which they may be forgotten.
        var bySecond: [UInt64: [UInt128]] = [:]
        /// Pairs of all seconds before this one were forgotten.
        var forgottenUpTo: UInt64 = 0
    }

    private let clock: MonotonicClock
    private let entriesMax: Int
    private let state = Mutex(State())

    /// `entriesMax`: the most pairs that are remembered at once, about 100 bytes each.
    package init(entriesMax: Int = 1 << 20, clock: MonotonicClock = .system) {
        precondition(entriesMax >= 0, "the size of a memory is negative")
        self.entriesMax = entriesMax
        self.clock = clock
    }

    /// Whether the pair was granted within its window.
    package func isSpent(_ fingerprint: Fingerprint) -> Bool {
        let now = clock.milliseconds
        return state.withLock { ($0.expiries[fingerprint.value] ?? 0) > now }
    }

    /// Remembers the pair for `windowSeconds`. Of all callers with the same pair, exactly one gets `spent`.
    package func spend(_ fingerprint: Fingerprint, windowSeconds: UInt32) -> Spending {
        let now = clock.milliseconds
        return state.withLock { state in
            if let expiry = state.expiries[fingerprint.value], expiry > now { return .replayed }
            forget(&state, before: now)
            guard state.expiries.count < entriesMax else { return .memoryFull }
            let expiry = now + UInt64(windowSeconds) * 1000
            state.expiries[fingerprint.value] = expiry
            state.bySecond[expiry / 1000 + 1, default: []].append(fingerprint.value)
            precondition(state.expiries.count <= entriesMax, "more pairs are remembered than there is room for")
            return .spent
        }
    }

    private func forget(_ state: inout State, before now: UInt64) {
        let second = now / 1000
        guard state.forgottenUpTo < second else { return }
        for due in state.bySecond.keys.filter({ $0 <= second }) {
            for value in state.bySecond.removeValue(forKey: due) ?? []
            where (state.expiries[value] ?? .max) <= now {
                state.expiries[value] = nil
            }
        }
        state.forgottenUpTo = second
        assert(
            state.expiries.values.allSatisfy { state.bySecond[$0 / 1000 + 1] != nil },
            "a pair would never be forgotten")
    }

    /// Number of pairs remembered now.
    package var count: Int { state.withLock { $0.expiries.count } }
}
