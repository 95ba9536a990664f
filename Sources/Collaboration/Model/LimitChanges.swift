package import Core
package import Principals

/// Changes of single limits of a principal. A limit that is left out stays.
public struct LimitChanges: Hashable, Sendable {
    /// What changes; nothing that stays.
    private let changes: [PrincipalLimits.Kind: Patch<Int>]

    /// Cleared: there is no such limit.
    public init(
        proofsPerSecond: Patch<Int> = .keep, requestsInFlight: Patch<Int> = .keep, requestBytes: Patch<Int> = .keep,
        followers: Patch<Int> = .keep, mutationsPerSecond: Patch<Int> = .keep
    ) {
        self.init([
            .proofsPerSecond: proofsPerSecond, .requestsInFlight: requestsInFlight, .requestBytes: requestBytes,
            .followers: followers, .mutationsPerSecond: mutationsPerSecond,
        ])
    }

    package init(_ changes: [PrincipalLimits.Kind: Patch<Int>]) { self.changes = changes.filter { $0.value != .keep } }

    /// Whether every limit stays.
    package var isEmpty: Bool { changes.isEmpty }

    /// The limits after the changes.
    package func applied(to limits: PrincipalLimits) -> PrincipalLimits {
        changes.reduce(into: limits) { $0[$1.key] = $1.value.applied(to: $0[$1.key]) }
    }

    /// Throws `malformedRequest` when a limit is below 0, `limitExceeded` when it is above `principalLimitMax`.
    package func check() throws(ServiceError) {
        for kind in PrincipalLimits.Kind.allCases {
            guard let value = changes[kind]?.value else { continue }
            try checkRange(value, 0...Limits.principalLimitMax, "changedLimits.\(kind.rawValue)")
        }
    }
}

extension LimitChanges: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: PrincipalLimits.Kind.self)
        var changes: [PrincipalLimits.Kind: Patch<Int>] = [:]
        for kind in PrincipalLimits.Kind.allCases {
            changes[kind] = try container.decode(Patch<Int>.self, forKey: kind)
        }
        self.init(changes)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PrincipalLimits.Kind.self)
        for (kind, change) in changes { try container.encode(change, forKey: kind) }
    }
}
