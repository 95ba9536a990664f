package import Core

/// How much of the service a principal may use, over all of its connections. A limit that is `nil` is the service's
/// own.
public struct PrincipalLimits: Hashable, Sendable, Codable {
    public var proofsPerSecond: Int?
    public var requestsInFlight: Int?
    /// Bytes of requests in memory.
    public var requestBytes: Int?
    /// Queries that wait for a change.
    public var followers: Int?
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

    /// Throws `malformedRequest` when a limit is below 0, `limitExceeded` when it is above `principalLimitMax`.
    package func check() throws(ServiceError) {
        let all = [
            ("proofsPerSecond", proofsPerSecond), ("requestsInFlight", requestsInFlight),
            ("requestBytes", requestBytes), ("followers", followers), ("mutationsPerSecond", mutationsPerSecond),
        ]
        for (name, limit) in all {
            try checkRange(limit ?? 0, 0...Limits.principalLimitMax, "limits.\(name)")
        }
    }
}
