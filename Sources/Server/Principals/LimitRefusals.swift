import Core
import Principals
import Synchronization

/// Counts what was refused because of limits: requests of principals by the kind of limit, and keys.
final class LimitRefusals: Sendable {
    private let requests = Lock<[PrincipalLimits.Kind: UInt64]>([:])
    /// Keys that were not looked at, because their address has presented too many wrong ones.
    let slowedKeys = Atomic<UInt64>(0)

    /// Counts a request that was refused because of a limit of this kind.
    func count(_ kind: PrincipalLimits.Kind) {
        requests.withLock { $0[kind, default: 0] += 1 }
    }

    /// Refused requests since the start, by the kind of limit.
    var counts: [(kind: PrincipalLimits.Kind, count: UInt64)] {
        requests.withLock { counts in PrincipalLimits.Kind.allCases.map { ($0, counts[$0] ?? 0) } }
    }
}
