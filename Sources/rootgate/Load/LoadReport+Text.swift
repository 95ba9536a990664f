import Core
import Foundation
import LoadHarness

extension LoadReport {
    private static let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)]

    /// For machines.
    var object: [String: Any] {
        [
            "proofs": proofs, "grants": grants, "requests": requests, "seconds": seconds,
            "proofsPerSecond": proofsPerSecond, "requestsPerSecond": requestsPerSecond, "wrong": wrong,
            "errors": errors,
            "verdicts": Dictionary(uniqueKeysWithValues: verdicts.map { ($0.key.name, $0.value) }),
            "latencyMicroseconds": LoadReport.object(latency),
            "kinds": Dictionary(
                uniqueKeysWithValues: latencies.map { kind, latency in
                    (
                        kind.rawValue,
                        [
                            "requests": latency.count, "latencyMicroseconds": LoadReport.object(latency),
                        ] as [String: Any]
                    )
                }),
        ]
    }

    private static func object(_ latency: Histogram) -> [String: Double] {
        var object = Dictionary(
            uniqueKeysWithValues: quantiles.map { ($0.0, Double(latency.quantile($0.1)) / 1000) })
        object["max"] = Double(latency.maximum) / 1000
        return object
    }

    /// For people. `unit`: what the rate counts.
    func text(unit: String) -> String {
        let sent = grants > 0 ? "\(proofs) and \(grants) grants" : "\(proofs)"
        var lines = [
            "proofs      \(sent) in \(requests) requests, \(String(format: "%.2f", seconds)) s",
            "rate        \(Int(unit == "requests" ? requestsPerSecond : proofsPerSecond)) \(unit)/s",
            "latency us  \(LoadReport.text(latency))",
        ]
        if latencies.count > 1 {
            for kind in LoadKind.allCases {
                guard let latency = latencies[kind] else { continue }
                lines.append(
                    "  \(kind.rawValue.padding(toLength: 10, withPad: " ", startingAt: 0))"
                        + "\(LoadReport.text(latency))  of \(latency.count) requests")
            }
        }
        for (verdict, count) in verdicts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            lines.append("  \(verdict.name.padding(toLength: 24, withPad: " ", startingAt: 0)) \(count)")
        }
        for (error, count) in errors.sorted(by: { $0.key < $1.key }) {
            lines.append("  error \(error.padding(toLength: 18, withPad: " ", startingAt: 0)) \(count) requests")
        }
        lines.append(wrong == 0 ? "every answer is as expected" : "WRONG ANSWERS: \(wrong)")
        return lines.joined(separator: "\n")
    }

    private static func text(_ latency: Histogram) -> String {
        quantiles.map { "\($0.0) \(latency.quantile($0.1) / 1000)" }.joined(separator: "  ")
            + "  max \(latency.maximum / 1000)"
    }
}
