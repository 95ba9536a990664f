import Principals
import Synchronization

/// Counts what was refused because of limits: requests of principals by the kind of limit, and keys.
final class LimitRefusals: Sendable {
    private let requests = Mutex([UInt64](repeating: 0, count: PrincipalLimits.Kind.allCases.count))
    /// Keys that were not looked at, because their address has presented too many wrong ones.
    let slowedKeys = Atomic<UInt64>(0)

    /// Counts a request that was refused because of a limit of this kind.
    func count(_ kind: PrincipalLimits.Kind) {
        requests.withLock { $0[kind.place] += 1 }
    }

    /// Refused requests since the start, by the kind of limit.
    var counts: [(kind: PrincipalLimits.Kind, count: UInt64)] {
        requests.withLock { counts in PrincipalLimits.Kind.allCases.map { ($0, counts[$0.place]) } }
    }
}

extension PrincipalLimits.Kind {
    fileprivate var place: Int {
        switch self {
        case .proofsPerSecond: 0
        case .requestsInFlight: 1
        case .requestBytes: 2
        case .followers: 3
        case .mutationsPerSecond: 4
        }
    }

    /// The name of its figure in the statistics.
    var figure: String {
        switch self {
        case .proofsPerSecond: "limited-proofs"
        case .requestsInFlight: "limited-requests"
        case .requestBytes: "limited-bytes"
        case .followers: "limited-followers"
        case .mutationsPerSecond: "limited-mutations"
        }
    }
}
