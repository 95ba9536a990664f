import Core
import TestSupport
import Testing

@Suite struct PowerHistogramTests {
    /// Whether the value is at most the bound of the bucket, by multiplication in 128 bits.
    private func isWithin(_ value: UInt64, _ exponent: Int, _ unit: PowerHistogram.Unit) -> Bool {
        let one: UInt128 = unit == .nanoseconds ? 1_000_000_000 : 1
        return exponent < 0
            ? UInt128(value) << UInt128(-exponent) <= one : UInt128(value) <= one << UInt128(exponent)
    }

    private func check(_ histogram: PowerHistogram, _ value: UInt64) {
        var counted = histogram
        counted.add(value)
        let bucket = zip(counted.counts, histogram.counts).enumerated().first { $1.0 != $1.1 }?.offset
        let expected = histogram.exponents.firstIndex { isWithin(value, $0, histogram.unit) }
            .map { histogram.exponents.distance(from: histogram.exponents.startIndex, to: $0) }
        #expect(bucket == expected ?? histogram.exponents.count, "\(value)")
    }

    @Test("Each value is in the first bucket whose bound is not below it")
    func buckets() {
        let sizes = PowerHistogram(of: .items, exponents: 0...8)
        for value in UInt64(0)...1000 { check(sizes, value) }
        check(sizes, .max)
        for exponent in PowerHistogram.durations.exponents {
            // The bound in nanoseconds, rounded down: those below 2^-9 s are no whole numbers.
            let bound = exponent < 0 ? 1_000_000_000 >> UInt64(-exponent) : UInt64(1_000_000_000) << UInt64(exponent)
            for value in [bound - 1, bound, bound + 1] { check(.durations, value) }
        }
        for value in [0, 1, UInt64.max, 1 << 62, 1 << 60] { check(.durations, value) }
        var generator = SeededGenerator(seed: runSeed)
        for _ in 0..<10_000 {
            let greatest = UInt64(1) << UInt64.random(in: 1...50, using: &generator)
            check(.durations, UInt64.random(in: 0...greatest, using: &generator))
        }
    }

    @Test("Values are counted several times, sums stay at their maximum, and histograms are added")
    func sums() {
        var one = PowerHistogram(of: .items, exponents: 0...2)
        one.add(3, times: 5)
        one.add(9)
        #expect(one.counts == [0, 0, 5, 1] && one.count == 6 && one.sum == 24)
        var other = one
        other.add(.max, times: 2)
        #expect(other.sum == .max && other.count == 8)
        one.add(other)
        #expect(one.sum == .max && one.counts == [0, 0, 10, 4])
    }

    @Test("What was counted since is the difference, and a quantile is between the bounds of its bucket")
    func quantiles() throws {
        var earlier = PowerHistogram(of: .items, exponents: 0...3)
        #expect(earlier.quantile(0.5) == nil)
        earlier.add(8, times: 100)
        var now = earlier
        now.add(1, times: 4)
        now.add(4, times: 4)
        now.add(100, times: 2)
        let rest = now.since(earlier)
        #expect(rest.counts == [4, 0, 4, 0, 2] && rest.sum == 220)
        for (part, value) in [(0.0, 0.0), (0.2, 0.5), (0.4, 1), (0.6, 3), (0.8, 4), (0.9, 8), (1, 8)] {
            #expect(abs(try #require(rest.quantile(part)) - value) < 1e-9, "\(part)")
        }
        var generator = SeededGenerator(seed: runSeed)
        for _ in 0..<200 {
            var histogram = PowerHistogram.durations
            var values = (0..<50).map { _ in UInt64.random(in: 1...30_000_000_000, using: &generator) }
            for value in values { histogram.add(value) }
            values.sort()
            for (part, place) in [(0.5, 24), (0.98, 48), (1, 49)] {
                let found = try #require(histogram.quantile(part)) * 1e9
                // The true one is in the same bucket.
                #expect(found > Double(values[place]) / 2 - 1000 && found <= Double(values[place]) * 2 + 1000)
            }
        }
    }
}
