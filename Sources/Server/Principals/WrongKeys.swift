import Core

/// Slows down who presents wrong keys, by address. While an address has presented too many, its keys are not looked at.
///
/// What is remembered is bounded: the address that was counted first is forgotten for another one.
struct WrongKeys {
    private var buckets: [Holder: TokenBucket] = [:]
    /// In the order in which they were counted first.
    private var addresses = Queue<Holder>()

    /// Addresses that are counted.
    var count: Int { buckets.count }

    /// Milliseconds until the address may present a key; `nil`: it may.
    func wait(of address: Holder, at now: UInt64) -> UInt64? { buckets[address]?.wait(at: now) }

    /// Notes that the address has presented a wrong key.
    mutating func note(_ address: Holder, at now: UInt64) {
        if buckets[address] == nil {
            if buckets.count == Limits.wrongKeyAddressesMax, let oldest = addresses.popFirst() {
                buckets[oldest] = nil
            }
            addresses.append(address)
        }
        var bucket =
            buckets[address]
            ?? TokenBucket(tokensPerSecond: Limits.wrongKeysPerSecond, burst: Limits.wrongKeysAtOnce, at: now)
        // Without a token other keys of the address were looked at in the meantime.
        _ = bucket.take(1, at: now)
        buckets[address] = bucket
    }
}
