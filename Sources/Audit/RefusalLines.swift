import Core

/// Decides which refusals get a line, and counts the others for one line about all of them.
///
/// Whoever reaches the port can be refused without end. So each peer has a limited number of lines, and so have all
/// addresses together. All principals together have a number of their own, so that nobody without a name can hide
/// their refusals. What is remembered is bounded: the peer that was counted first is forgotten for another one.
struct RefusalLines {
    /// What got no line since the last summary. Times are milliseconds since 1970.
    private struct LeftOut {
        var refusals: UInt64 = 0
        var wrongKeys: UInt64 = 0
        let since: UInt64
        var until: UInt64
        /// When the summary is due, in milliseconds of the caller's clock.
        let dueAt: UInt64
    }

    private var buckets: [Holder: TokenBucket] = [:]
    /// In the order in which they were counted first.
    private var peers = Queue<Holder>()
    private var addresses: TokenBucket
    private var principals: TokenBucket
    private var leftOut: LeftOut?

    /// Peers that are counted.
    var count: Int { buckets.count }

    init(at now: UInt64) {
        addresses = TokenBucket(
            tokensPerSecond: Limits.auditRefusalsPerSecond, burst: Limits.auditRefusalsAtOnce, at: now)
        principals = addresses
    }

    /// Whether a refusal of the peer gets a line.
    mutating func admit(_ peer: Holder, at now: UInt64) -> Bool {
        var bucket =
            buckets[peer]
            ?? TokenBucket(
                tokensPerSecond: Limits.auditPeerRefusalsPerSecond, burst: Limits.auditPeerRefusalsAtOnce, at: now)
        guard bucket.wait(at: now) == nil else { return false }
        let isTaken = peer.isPrincipal ? principals.take(1, at: now) : addresses.take(1, at: now)
        guard isTaken == nil else { return false }
        _ = bucket.take(1, at: now)
        if buckets[peer] == nil {
            if buckets.count == Limits.auditRefusalPeersMax, let oldest = peers.popFirst() { buckets[oldest] = nil }
            peers.append(peer)
        }
        buckets[peer] = bucket
        return true
    }

    /// Counts a refusal without a line. Returns whether it is the first one since the last summary.
    mutating func leaveOut(_ kind: AuditRecord.Kind, at now: UInt64, date: UInt64) -> Bool {
        let isFirst = leftOut == nil
        var counted = leftOut ?? LeftOut(since: date, until: date, dueAt: now + Limits.auditSummaryMilliseconds)
        if kind == .key { counted.wrongKeys += 1 } else { counted.refusals += 1 }
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
        let refusals = "\(counted.refusals) \(counted.refusals == 1 ? "refusal" : "refusals")"
        let keys = "\(counted.wrongKeys) wrong \(counted.wrongKeys == 1 ? "key" : "keys")"
        let (since, until) = (AuditLine.time(counted.since), AuditLine.time(counted.until))
        return AuditRecord(
            .refusal, principal: "service", operation: "left-out",
            detail: "\(refusals) and \(keys) have no line, from \(since) to \(until)")
    }
}
