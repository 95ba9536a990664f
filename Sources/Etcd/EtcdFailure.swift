/// Why a member of etcd has not done what it was asked.
package enum EtcdFailure: Error, Hashable, Sendable {
    /// Nothing was sent: no connection could be made. The request had no effect.
    case unreachable(String)
    /// A part of the request was sent, and no whole answer came. Nobody knows whether the request had an effect.
    case unknown(String)
    /// The member answered that it does not do it. The request had no effect, and will have none. Only one that was
    /// refused with `noSpace` may have had its effect before it was refused.
    case refused(Refusal, String)

    /// Why a member refuses a request.
    package enum Refusal: Hashable, Sendable {
        /// The database is as large as it may become. Reads, deletions and compactions go on. After there is room again
        /// the alarm has to be ended: see `EtcdSession.endAlarms`. A member says so, too, when it has applied the
        /// change that has filled the database.
        case noSpace
        /// The revision that was asked for is not kept any more.
        case compacted
        /// The member knows no leader: most members are away, or it is cut off from them.
        case noLeader
        /// The member has more requests than it can do.
        case tooManyRequests
        /// The request is larger than members take: 1.5 MiB by their default.
        case tooLarge
        /// The user's name or password is wrong, or etcd wants a user and none is configured.
        case unauthenticated
        /// The user may not do this.
        case forbidden
        /// There is no lease of that number.
        case noLease
        /// Another reason, which the text has.
        case other
    }
}

extension EtcdFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreachable(let reason): reason
        case .unknown(let reason): "the outcome is unknown: \(reason)"
        case .refused(_, let reason): reason
        }
    }
}

extension EtcdFailure {
    /// What an answer means whose status is not 200. `code`: of gRPC; `nil` when the answer has none.
    ///
    /// Only what a member says before it proposes a change to the others, or when it applies one, is a refusal. A
    /// member that gives up waiting may have done so too early.
    init(status: Int, code: Int?, message: String) {
        let text = "etcd answers \(status): \(message)"
        let says = { (part: String) in message.contains(part) }
        switch code {
        case 8 where says("database space exceeded"): self = .refused(.noSpace, text)
        case 8 where says("too many requests"): self = .refused(.tooManyRequests, text)
        case 8 where says("larger than max"), 3 where says("request is too large"): self = .refused(.tooLarge, text)
        case 11 where says("compacted"): self = .refused(.compacted, text)
        case 14 where says("no leader"): self = .refused(.noLeader, text)
        case 16: self = .refused(.unauthenticated, text)
        case 3 where says("authentication failed") || says("user name is empty"):
            self = .refused(.unauthenticated, text)
        // Users or roles have changed, and the token is from before.
        case 3 where says("revision of auth store is old"):
            self = .refused(.unauthenticated, text)
        case 7: self = .refused(.forbidden, text)
        case 5 where says("lease not found"): self = .refused(.noLease, text)
        // Invalid arguments, out of range, unimplemented: found before anything is done.
        case 3, 11, 12: self = .refused(.other, text)
        case nil where (400..<500).contains(status) && status != 408 && status != 429: self = .refused(.other, text)
        default: self = .unknown(text)
        }
    }
}
