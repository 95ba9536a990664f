import Foundation

/// How steeply figures rise over time.
struct Slope {
    /// The rise of a straight line through the figures, in figures per unit of time.
    let value: Double
    /// With 95 % probability the true rise is no further than this from `value`.
    let margin: Double

    /// The median of the rises between each two figures of a part (P. K. Sen, 1968). So a few figures that are far from
    /// the others make no difference. Something has happened between two parts, and rises over that do not count.
    ///
    /// Without a rise, as many pairs rise as fall, but for chance. What chance makes of that difference tells the
    /// margin. Neighbouring figures are alike, so they count for less: the margin grows with the correlation of each
    /// figure's rank with that of the one before. `nil` for fewer than ten figures.
    init?(_ parts: [[(time: Double, figure: Double)]]) {
        let parts = parts.filter { $0.count > 1 }
        let rises = parts.flatMap(Slope.rises).sorted()
        guard parts.reduce(0, { $0 + $1.count }) >= 10, !rises.isEmpty else { return nil }
        let median = Slope.median(rises)
        // The variance of the difference between the pairs that rise and those that fall (M. Kendall, 1938).
        var variance = 0.0
        for part in parts {
            let count = Double(part.count)
            variance += count * (count - 1) * (2 * count + 5) / 18
        }
        let correlation = Slope.correlation(parts.map { $0.map { $0.figure - median * $0.time } })
        let chance = 2 * (variance * (1 + correlation) / (1 - correlation)).squareRoot()
        // The places of the interval's ends among the rises.
        let middle = Double(rises.count - 1) / 2
        let last = rises.count - 1
        let low = max(0, Int((middle - chance / 2).rounded(.down)))
        let high = min(last, Int((middle + chance / 2).rounded(.up)))
        value = median
        margin = max(median - rises[min(low, last)], rises[max(high, 0)] - median)
    }

    /// The rises between each two figures of different moments.
    private static func rises(_ part: [(time: Double, figure: Double)]) -> [Double] {
        part.indices.flatMap { one in
            part[(one + 1)...].compactMap { other in
                let time = other.time - part[one].time
                return time == 0 ? nil : (other.figure - part[one].figure) / time
            }
        }
    }

    /// `sorted`: not empty.
    private static func median(_ sorted: [Double]) -> Double {
        (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }

    /// How alike neighbours are by their ranks within their part, from 0 to 0.98.
    private static func correlation(_ parts: [[Double]]) -> Double {
        var (products, squares) = (0.0, 0.0)
        for part in parts {
            var ranks = [Double](repeating: 0, count: part.count)
            for (rank, place) in part.indices.sorted(by: { part[$0] < part[$1] }).enumerated() {
                ranks[place] = Double(rank) - Double(part.count - 1) / 2
            }
            squares += ranks.reduce(0) { $0 + $1 * $1 }
            products += zip(ranks, ranks.dropFirst()).reduce(0) { $0 + $1.0 * $1.1 }
        }
        return squares > 0 ? min(0.98, max(0, products / squares)) : 0
    }
}
