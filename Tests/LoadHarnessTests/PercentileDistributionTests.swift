import Foundation
import Testing

@testable import LoadHarness

@Suite("Distributions for HdrHistogram's tools")
struct PercentileDistributionTests {
    /// The numbers of the lines between the head and the sums.
    private func rows(_ text: String) -> [[Double]] {
        text.split(separator: "\n").dropFirst().prefix { !$0.hasPrefix("#") }.map { line in
            line.split(separator: " ").map { $0 == "Infinity" ? .infinity : Double($0) ?? .nan }
        }
    }

    @Test("Each line tells how many durations are not longer, up to all of them")
    func rows() throws {
        var histogram = Histogram()
        // 1 to 1,000 ms.
        for milliseconds in 1...1000 as ClosedRange<UInt64> { histogram.record(milliseconds * 1_000_000) }
        let text = histogram.percentileDistribution
        #expect(text.hasPrefix("         Value     Percentile TotalCount 1/(1-Percentile)\n\n"), "\(text.prefix(60))")
        let rows = rows(text)
        #expect(rows.count > 40 && rows.allSatisfy { $0.count == 4 && !$0.contains { $0.isNaN } })
        for row in rows {
            // Places are a 64th wide.
            let exact = max(1, (row[1] * 1000).rounded(.up))
            #expect(row[0] >= exact && row[0] <= exact * (1 + 1.0 / 32), "\(row)")
            #expect(row[2] >= exact && row[2] <= row[0] * (1 + 1.0 / 1000) + 1, "\(row)")
        }
        #expect(zip(rows, rows.dropFirst()).allSatisfy { $0[0] <= $1[0] && $0[1] < $1[1] && $0[2] <= $1[2] })
        #expect(rows.first?[1] == 0 && rows.last?[1] == 1 && rows.last?[2] == 1000 && rows.last?[3] == .infinity)
        #expect(text.contains("#[Max     = 1000.000000, Total count    = 1000]\n"))
        let mean = try #require(text.firstMatch(of: /Mean    = ([0-9.]+), StdDeviation   = ([0-9.]+)/))
        #expect(abs((Double(mean.1) ?? 0) - 500.5) < 5 && abs((Double(mean.2) ?? 0) - 288.7) < 3)
    }

    @Test("Nothing recorded is a distribution without lines, and one duration has lines of its own")
    func few() {
        #expect(rows(Histogram().percentileDistribution).isEmpty)
        var histogram = Histogram()
        histogram.record(2_500_000)
        let rows = rows(histogram.percentileDistribution)
        #expect(rows.count == 2 && rows.allSatisfy { $0[2] == 1 && $0[0] == 2.5 }, "\(rows)")
    }
}
