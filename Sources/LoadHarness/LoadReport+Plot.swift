extension LoadReport {
    /// The latency that each part of the requests did not exceed, for each kind.
    package func latencyPlot(title: String) -> Plot {
        let most = latencies.values.map(\.count).max() ?? 0
        // The last mark is the part that leaves one request out.
        var ticks = [1.0, 2, 10]
        while ticks.last ?? 0 < Double(most), ticks.count < LoadReport.partNames.count {
            ticks.append((ticks.last ?? 1) * 10)
        }
        let names = Array(LoadReport.partNames.prefix(ticks.count))
        return Plot(
            title: title,
            x: Plot.Axis(
                label: "part of the requests", isLogarithmic: true, ticks: ticks, names: names),
            y: Plot.Axis(label: "latency, milliseconds", isLogarithmic: true),
            series: LoadKind.allCases.compactMap { kind in
                latencies[kind].map { Plot.Series(name: kind.rawValue, points: LoadReport.points($0, ticks)) }
            })
    }

    /// Fastest, half, nine tenths, and so on.
    private static let partNames = [
        "0", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "99.99999 %",
    ]

    private static func points(_ latency: Histogram, _ ticks: [Double]) -> [Plot.Point] {
        let end = min(ticks.last ?? 1, Double(latency.count))
        var points: [Plot.Point] = []
        var place = 1.0
        while place <= end {
            points.append(Plot.Point(x: place, y: Double(latency.quantile(1 - 1 / place)) / 1e6))
            place *= pointDistance
        }
        return points
    }

    /// The factor from one point's place to the next one's.
    private static let pointDistance = 1.05
}
