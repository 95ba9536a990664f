import Foundation

extension Histogram {
    /// The distribution as the text that HdrHistogram's tools read and draw (`.hgrm`): milliseconds, the part that took
    /// no longer, and how many those are. There are five lines between a part and the one that halves its distance to
    /// the whole.
    package var percentileDistribution: String {
        var lines = [Histogram.columns(["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]), ""]
        var part = 0.0
        while count > 0 {
            let (value, below) = valueAndCount(part)
            let distance = part < 1 ? String(format: "%.2f", 1 / (1 - part)) : "Infinity"
            lines.append(
                Histogram.columns([
                    Histogram.milliseconds(Double(value)), String(format: "%.12f", part), "\(below)", distance,
                ]))
            guard part < 1 else { break }
            // Everything is counted: the last line is the whole.
            let halvings = floor(log2(1 / (1 - part))) + 1
            part = below == count ? 1 : min(1, part + 1 / (Double(Histogram.linesPerHalving) * pow(2, halvings)))
        }
        let (mean, deviation) = moments
        lines.append(
            "#[Mean    = \(Histogram.milliseconds(mean)), StdDeviation   = \(Histogram.milliseconds(deviation))]")
        lines.append("#[Max     = \(Histogram.milliseconds(Double(maximum))), Total count    = \(count)]")
        lines.append("#[Buckets = \(Histogram.powers), SubBuckets     = \(1 << Histogram.subBits)]")
        return lines.joined(separator: "\n") + "\n"
    }

    private static let linesPerHalving = 5

    private static func milliseconds(_ nanoseconds: Double) -> String { String(format: "%.6f", nanoseconds / 1e6) }

    private static func columns(_ texts: [String]) -> String {
        zip(texts, [14, 15, 11, 15]).map { text, width in
            String(repeating: " ", count: max(1, width - text.count)) + text
        }.joined()
    }
}
