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
    package enum Kind: String, CaseIterable, Sendable {
        case proofsPerSecond, requestsInFlight, requestBytes, followers, mutationsPerSecond
    }

    /// The limit of this kind.
    package subscript(kind: Kind) -> Int? {
        get { self[keyPath: PrincipalLimits.field(kind)] }
        set { self[keyPath: PrincipalLimits.field(kind)] = newValue }
    }

    private static func field(_ kind: Kind) -> WritableKeyPath<PrincipalLimits, Int?> {
        switch kind {
        case .proofsPerSecond: \.proofsPerSecond
        case .requestsInFlight: \.requestsInFlight
        case .requestBytes: \.requestBytes
        case .followers: \.followers
        case .mutationsPerSecond: \.mutationsPerSecond
        }
    }

    /// Throws `malformedRequest` when a limit is below 0, `limitExceeded` when it is above `principalLimitMax`.
    package func check() throws(ServiceError) {
        for kind in Kind.allCases {
            try checkRange(self[kind] ?? 0, 0...Limits.principalLimitMax, "limits.\(kind.rawValue)")
        }
    }
}
