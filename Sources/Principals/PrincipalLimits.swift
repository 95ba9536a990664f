package import Core

/// How much of the service a principal may use, over all of its connections. A limit that is `nil` is none: then only
/// the shares bound the principal that everybody has.
public struct PrincipalLimits: Hashable, Sendable, Codable {
    /// Proofs that it may have verified in a second; besides, as many challenges, and checks of
    /// `Limits.grantsPerProof` times as many grants.
    public var proofsPerSecond: Int?
    /// Requests that are neither answered nor suspended.
    public var requestsInFlight: Int?
    /// Bytes of frames, requests and unread answers in memory.
    public var requestBytes: Int?
    /// Queries that wait for a change.
    public var followers: Int?
    /// Requests in a second that may change something.
    public var mutationsPerSecond: Int?

    public init(
        proofsPerSecond: Int? = nil, requestsInFlight: Int? = nil, requestBytes: Int? = nil, followers: Int? = nil,
        mutationsPerSecond: Int? = nil
    ) {
        self.proofsPerSecond = proofsPerSecond
        self.requestsInFlight = requestsInFlight
        self.requestBytes = requestBytes
        self.followers = followers
        self.mutationsPerSecond = mutationsPerSecond
    }

    /// A kind of limit, by its field.
    package enum Kind: String, CaseIterable, Sendable, CodingKey {
        case proofsPerSecond, requestsInFlight, requestBytes, followers, mutationsPerSecond
    }

    /// The limit of this kind.
    package subscript(kind: Kind) -> Int? {
        get { self[keyPath: kind.facts.field] }
        set { self[keyPath: kind.facts.field] = newValue }
    }

    /// Throws `malformedRequest` when a limit is below 0, `limitExceeded` when it is above `principalLimitMax`.
    package func check() throws(ServiceError) {
        for kind in Kind.allCases {
            try checkRange(self[kind] ?? 0, 0...Limits.principalLimitMax, "limits.\(kind.rawValue)")
        }
    }
}

extension PrincipalLimits.Kind {
    fileprivate typealias Facts = (
        field: WritableKeyPath<PrincipalLimits, Int?>, figure: String, unit: String, bounded: String
    )

    /// Everything that differs between kinds, in one place.
    fileprivate var facts: Facts {
        switch self {
        case .proofsPerSecond:
            (\.proofsPerSecond, "limited-proofs", "proofs/s", "proofs that it may have verified in a second")
        case .requestsInFlight: (\.requestsInFlight, "limited-requests", "requests", "requests at once")
        case .requestBytes:
            (\.requestBytes, "limited-bytes", "bytes", "bytes of its requests and answers in memory")
        case .followers: (\.followers, "limited-followers", "followers", "queries that wait for a change")
        case .mutationsPerSecond:
            (
                \.mutationsPerSecond, "limited-mutations", "mutations/s",
                "changes in a second, with a reserve for removals"
            )
        }
    }

    /// The name of the figure in the statistics that counts what was refused because of such a limit.
    package var figure: String { facts.figure }

    /// What is counted, behind a number.
    package var unit: String { facts.unit }

    /// What the limit bounds, in words.
    package var bounded: String { facts.bounded }
}
