import Core

/// Decides which refusals get a line, and counts the others for one line about all of them.
///
/// Whoever reaches the port can be refused without end. So each peer has a limited number of lines, and so have all
/// addresses together. All principals together have a number of their own, so that nobody without a name can hide
/// their refusals. What is remembered is bounded: the peer that was counted first is forgotten for another one.
package struct RefusalLines {
    /// What was refused.
    package enum Kind: CaseIterable, Sendable {
        /// A request that its sender's role or grant does not allow.
        case request
        /// A key that is nobody's.
        case wrongKey
        /// A key that was not looked at, because its address had presented too many wrong ones.
        case slowedKey

        /// A number of them, for people.
        fileprivate func text(_ count: UInt64) -> String {
            let one =
                switch self {
                case .request: "refusal"
                case .wrongKey: "wrong key"
                case .slowedKey: "slowed key"
                }
            return "\(count) \(one)\(count == 1 ? "" : "s")"
        }
    }

    /// Whose lines are limited together. A peer's slowed keys have a limit of their own: the wrong keys before them use
    /// up the other one.
    private struct Source: Hashable {
        let peer: Holder
        let isSlowed: Bool
    }

    /// What got no line since the last summary. Times are milliseconds since 1970.
    private struct LeftOut {
        var counts: [Kind: UInt64] = [:]
        let since: UInt64
        var until: UInt64
        /// When the summary is due, in milliseconds of the caller's clock.
        let dueAt: UInt64
    }

    private var buckets: [Source: TokenBucket] = [:]
    /// In the order in which they were counted first.
    private var sources = Queue<Source>()
    private var addresses: TokenBucket
    private var principals: TokenBucket
    private var leftOut: LeftOut?

    /// Peers that are counted, once or twice each.
    var count: Int { buckets.count }

    init(at now: UInt64) {
        addresses = TokenBucket(
            tokensPerSecond: Limits.auditRefusalsPerSecond, burst: Limits.auditRefusalsAtOnce, at: now)
        principals = addresses
    }

    /// Whether a refusal of the peer gets a line.
    mutating func admit(_ kind: Kind, of peer: Holder, at now: UInt64) -> Bool {
        let source = Source(peer: peer, isSlowed: kind == .slowedKey)
        var bucket =
            buckets[source]
            ?? TokenBucket(
                tokensPerSecond: Limits.auditPeerRefusalsPerSecond, burst: Limits.auditPeerRefusalsAtOnce, at: now)
        guard bucket.wait(at: now) == nil else { return false }
        let isTaken = peer.isPrincipal ? principals.take(1, at: now) : addresses.take(1, at: now)
        guard isTaken == nil else { return false }
        _ = bucket.take(1, at: now)
        if buckets[source] == nil {
            if buckets.count == Limits.auditRefusalPeersMax, let oldest = sources.popFirst() { buckets[oldest] = nil }
            sources.append(source)
        }
        buckets[source] = bucket
        return true
    }

    /// Counts a refusal without a line. Returns whether it is the first one since the last summary.
    mutating func leaveOut(_ kind: Kind, at now: UInt64, date: UInt64) -> Bool {
        let isFirst = leftOut == nil
        var counted = leftOut ?? LeftOut(since: date, until: date, dueAt: now + Limits.auditSummaryMilliseconds)
        counted.counts[kind, default: 0] += 1
        counted.until = max(counted.until, date)
        leftOut = counted
        return isFirst
    }

    /// Milliseconds until a summary is due; `nil`: nothing was left out.
    func wait(at now: UInt64) -> UInt64? { leftOut.map { now < $0.dueAt ? $0.dueAt - now : 0 } }

    /// The record of what was left out, which is counted no longer; `nil`: nothing was.
    mutating func takeSummary() -> AuditRecord? {
        guard let counted = leftOut else { return nil }
        leftOut = nil
        let texts = Kind.allCases.map { $0.text(counted.counts[$0] ?? 0) }
        let all = texts.dropLast().joined(separator: ", ") + " and " + (texts.last ?? "")
        let (since, until) = (AuditLine.time(counted.since), AuditLine.time(counted.until))
        return AuditRecord(
            .refusal, principal: "service", operation: "left-out",
            detail: "\(all) have no line, from \(since) to \(until)")
    }
}
