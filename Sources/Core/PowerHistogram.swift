import Foundation

/// Counts values by size, in buckets whose bounds are powers of two. So every bucket is one of Prometheus' native
/// histograms with the schema 0, too. Counting allocates nothing.
package struct PowerHistogram: Equatable, Sendable {
    /// What is counted.
    package enum Unit: Sendable {
        /// Durations. They are given in nanoseconds, and the bounds are powers of two of a second.
        case nanoseconds
        case items
    }

    package let unit: Unit
    /// The exponents of the bounds: a bucket's bound is two to the power of its exponent, in seconds or items.
    package let exponents: ClosedRange<Int>
    /// How many values are in each bucket: above the bound before and at most at its own. The last bucket has what is
    /// above all bounds.
    package private(set) var counts: [UInt64]
    /// The sum of all values, in nanoseconds or items. It stays at its maximum.
    package private(set) var sum: UInt64 = 0

    package init(of unit: Unit, exponents: ClosedRange<Int>) {
        precondition(unit == .nanoseconds || exponents.lowerBound >= 0, "no item is a fraction")
        precondition(exponents.lowerBound >= -30 && exponents.upperBound < 30, "a bound is too small or too large")
        self.unit = unit
        self.exponents = exponents
        counts = [UInt64](repeating: 0, count: exponents.count + 1)
    }

    /// For durations from a microsecond to some seconds.
    package static let durations = PowerHistogram(of: .nanoseconds, exponents: -20...5)

    /// How many values were counted.
    package var count: UInt64 { counts.reduce(0, &+) }

    /// Counts a value, `times` times.
    package mutating func add(_ value: UInt64, times: UInt64 = 1) {
        counts[bucket(of: value)] &+= times
        let (product, overflows) = value.multipliedReportingOverflow(by: times)
        sum = overflows ? .max : sum.addingReportingOverflow(product).overflow ? .max : sum + product
    }

    /// Adds what another histogram of the same kind has counted.
    package mutating func add(_ other: PowerHistogram) {
        precondition(unit == other.unit && exponents == other.exponents, "the histograms have other buckets")
        for bucket in counts.indices { counts[bucket] &+= other.counts[bucket] }
        sum = sum.addingReportingOverflow(other.sum).overflow ? .max : sum + other.sum
    }

    /// What was counted since an earlier state of the same histogram.
    package func since(_ earlier: PowerHistogram) -> PowerHistogram {
        precondition(unit == earlier.unit && exponents == earlier.exponents, "the histograms have other buckets")
        var rest = self
        for bucket in counts.indices { rest.counts[bucket] &-= earlier.counts[bucket] }
        rest.sum = sum == .max ? .max : sum &- earlier.sum
        return rest
    }

    /// The value below which that part of the counted values is, in seconds or items: exact at the bounds of buckets,
    /// and estimated in between as if a bucket's values were spread evenly. What is above all bounds counts as the last
    /// bound. `nil` when nothing was counted.
    package func quantile(_ part: Double) -> Double? {
        let wanted = part * Double(count)
        guard count > 0 else { return nil }
        var below = 0.0
        for (bucket, exponent) in exponents.enumerated() {
            let inside = Double(counts[bucket])
            if inside > 0, below + inside >= wanted {
                let (low, high) = (bucket == 0 ? 0 : exp2(Double(exponent - 1)), exp2(Double(exponent)))
                return low + (high - low) * max(0, wanted - below) / inside
            }
            below += inside
        }
        return exp2(Double(exponents.upperBound))
    }

    private func bucket(of value: UInt64) -> Int {
        var parts = value
        if unit == .nanoseconds {
            // Parts of 2^-30 seconds, rounded up: what is just above a bound belongs into the next bucket. The quotient
            // is below 2^62, because the value is below 2^61.
            let product = min(value, 1 << 60).multipliedFullWidth(by: 1 << 30)
            let (quotient, remainder) = UInt64(1_000_000_000).dividingFullWidth(product)
            parts = remainder == 0 ? quotient : quotient + 1
        }
        let lowest = exponents.lowerBound + (unit == .nanoseconds ? 30 : 0)
        // The least n with parts <= 2^n.
        let exponent = parts <= 1 ? 0 : 64 - (parts - 1).leadingZeroBitCount
        return min(max(0, exponent - lowest), counts.count - 1)
    }
}
