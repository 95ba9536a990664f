/// Counts durations in nanoseconds with a relative error of at most 1/64, from
/// one nanosecond to 18 minutes, in fixed memory.
package struct Histogram: Sendable {
    static let subBits = 6
    /// Powers of two that are cut into places of their own.
    static let powers = 41 - subBits
    private var counts = [UInt64](repeating: 0, count: powers << subBits)
    package private(set) var count: UInt64 = 0
    package private(set) var maximum: UInt64 = 0

    package init() {}

    package mutating func record(_ nanoseconds: UInt64) {
        counts[min(Histogram.place(of: nanoseconds), counts.count - 1)] += 1
        count += 1
        maximum = max(maximum, nanoseconds)
    }

    package mutating func add(_ other: Histogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        count += other.count
        maximum = max(maximum, other.maximum)
    }

    /// The duration that `fraction` (0 to 1) of the recorded ones don't exceed, in nanoseconds.
    package func quantile(_ fraction: Double) -> UInt64 { valueAndCount(fraction).value }

    /// The duration that `fraction` (0 to 1) of the recorded ones don't exceed, in nanoseconds, and how many of all
    /// don't.
    func valueAndCount(_ fraction: Double) -> (value: UInt64, count: UInt64) {
        let wanted = max(1, UInt64((fraction * Double(count)).rounded(.up)))
        var sum: UInt64 = 0
        for (place, count) in counts.enumerated() {
            sum += count
            if sum >= wanted { return (min(maximum, Histogram.upperBound(of: place)), sum) }
        }
        return (maximum, sum)
    }

    /// The mean of the recorded durations and their standard deviation, in nanoseconds, as if each were the middle of
    /// its place.
    var moments: (mean: Double, deviation: Double) {
        guard count > 0 else { return (0, 0) }
        var (sum, squares) = (0.0, 0.0)
        for (place, count) in counts.enumerated() where count > 0 {
            let lower = place == 0 ? 0 : Double(Histogram.upperBound(of: place - 1)) + 1
            let middle = (lower + Double(min(maximum, Histogram.upperBound(of: place)))) / 2
            sum += middle * Double(count)
            squares += middle * middle * Double(count)
        }
        let mean = sum / Double(count)
        return (mean, max(0, squares / Double(count) - mean * mean).squareRoot())
    }

    /// Values below 64 have a place of their own; above, each power of two is cut into 64 places.
    private static func place(of value: UInt64) -> Int {
        guard value >> subBits > 0 else { return Int(value) }
        let shift = UInt64.bitWidth - value.leadingZeroBitCount - subBits - 1
        return (shift << subBits) + Int(value >> UInt64(shift))
    }

    private static func upperBound(of place: Int) -> UInt64 {
        guard place >= 2 << subBits else { return UInt64(place) }
        let shift = (place >> subBits) - 1
        return ((UInt64(place) - UInt64(shift << subBits) + 1) << UInt64(shift)) - 1
    }
}
