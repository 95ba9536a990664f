/// A rate limit. Tokens come at a steady rate until there are as many as may be used at once.
///
/// Whoever finds one token may take any number: what is missing is a debt, and nobody gets more until it is paid. So a
/// batch that is larger than what comes in a second is possible, and the rate holds all the same.
package struct TokenBucket: Sendable {
    package let tokensPerSecond: Int
    /// Tokens that there are at most.
    package let burst: Int
    /// Thousandths of a token; below 0: a debt.
    private var level: Int
    /// When `level` was right, in milliseconds of the caller's clock.
    private var since: UInt64

    /// A full bucket. `tokensPerSecond` and `burst`: from 1 to `Limits.principalLimitMax`.
    package init(tokensPerSecond: Int, burst: Int, at now: UInt64) {
        precondition((1...Limits.principalLimitMax).contains(tokensPerSecond), "a bucket is never filled, or overflows")
        precondition((1...Limits.principalLimitMax).contains(burst), "a bucket holds no token, or overflows")
        self.tokensPerSecond = tokensPerSecond
        self.burst = burst
        level = burst * 1000
        since = now
    }

    /// A bucket of another rate with what is left in this one, its debt included.
    package func resized(tokensPerSecond: Int, burst: Int, at now: UInt64) -> TokenBucket {
        var bucket = TokenBucket(tokensPerSecond: tokensPerSecond, burst: burst, at: now)
        bucket.level = min(bucket.level, level(at: now))
        return bucket
    }

    /// Milliseconds until there is a token; `nil`: there is one.
    package func wait(at now: UInt64) -> UInt64? {
        let missing = 1000 - level(at: now)
        return missing <= 0 ? nil : UInt64((missing + tokensPerSecond - 1) / tokensPerSecond)
    }

    /// Takes `count` tokens if there is one. Otherwise takes none, and returns after how many milliseconds there is
    /// one.
    package mutating func take(_ count: Int, at now: UInt64) -> UInt64? {
        precondition((0...Limits.principalLimitMax).contains(count), "more tokens are taken than are counted")
        if let wait = wait(at: now) { return wait }
        level = level(at: now) - count * 1000
        since = max(since, now)
        return nil
    }

    private func level(at now: UInt64) -> Int {
        let full = burst * 1000
        // A thousandth comes in each millisecond for each token of a second. Nothing overflows: a debt is what one
        // caller took.
        let elapsed = now > since ? now - since : 0
        let needed = UInt64((full - level) / tokensPerSecond) + 1
        return elapsed >= needed ? full : level + Int(elapsed) * tokensPerSecond
    }
}
