import Core
import Foundation

/// A service's statistics at one moment.
package struct ServiceSample: Sendable {
    package let figures: [String: UInt64]

    package init(figures: [String: UInt64]) { self.figures = figures }

    /// A figure; 0 when the service has not told it.
    package subscript(_ name: String) -> UInt64 { figures[name] ?? 0 }

    /// How often a service has given each verdict that it knows.
    package var verdicts: [(name: String, count: UInt64)] {
        figures.filter { $0.key.hasPrefix(ServiceSample.verdictPrefix) }
            .map { (String($0.key.dropFirst(ServiceSample.verdictPrefix.count)), $0.value) }
            .sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    }

    package static let verdictPrefix = "verdict-"
}

/// What `rootgate top` and the console show at one moment: the figures of a sample, and how fast the counters among
/// them grow.
package struct ServiceView: Sendable {
    /// What the rates are averages over.
    package enum Base: Equatable, Sendable {
        /// The time since the sample before.
        case lastSample
        /// The time since the service's start: there is no sample before.
        case start
        /// The time since the service's start, which came after the sample before.
        case restart
    }

    package let sample: ServiceSample
    package let base: Base
    /// The seconds that the rates are averages over, by the service's clock.
    package let seconds: Double
    /// How much each counter has grown a second. A counter that the sample before has not has none, and nothing has one
    /// when no time has passed.
    package let rates: [String: Double]
    /// Verdicts a second, of all kinds.
    package let proofRate: Double?
    /// The part of each verdict in those of the view's time; none when there were none.
    package let shares: [String: Double]

    private static let counters: Set<String> = [
        "requests", "requests-busy", "connections-accepted", "mutations", "commits", "challenges-issued",
        "known-key-hits", "cross-checks", "cross-checks-skipped", "cross-check-disagreements", "keys-slowed",
    ]
    private static let prefixesOfCounters = [ServiceSample.verdictPrefix, "limited-", "operation-"]
    private static let uptime = "uptime-milliseconds"

    /// `previous`: an earlier sample of the service at the same address; `nil`: there is none.
    package init(_ sample: ServiceSample, after previous: ServiceSample?) {
        self.sample = sample
        let uptime = sample[Self.uptime]
        var before: [String: UInt64] = [:]
        var milliseconds = uptime
        switch previous {
        case nil: base = .start
        case .some(let previous) where Self.hasLess(sample, than: previous): base = .restart
        case .some(let previous):
            base = .lastSample
            before = previous.figures
            milliseconds = uptime - min(uptime, previous[Self.uptime])
        }
        seconds = Double(milliseconds) / 1000
        var growth: [String: UInt64] = [:]
        for (name, value) in sample.figures where Self.isCounter(name) {
            // A service that begins to tell a figure has not counted it since the sample before.
            guard let old = base == .lastSample ? before[name] : 0, value >= old else { continue }
            growth[name] = value - old
        }
        let verdicts = growth.filter { $0.key.hasPrefix(ServiceSample.verdictPrefix) }
        let proofs = verdicts.values.reduce(0.0) { $0 + Double($1) }
        let seconds = seconds
        rates = seconds > 0 ? growth.mapValues { Double($0) / seconds } : [:]
        proofRate = seconds > 0 ? proofs / seconds : nil
        shares =
            proofs > 0
            ? Dictionary(
                uniqueKeysWithValues: verdicts.map {
                    (String($0.key.dropFirst(ServiceSample.verdictPrefix.count)), Double($0.value) / proofs)
                }) : [:]
    }

    /// Whether the service has been up for less time than at an earlier sample, or has counted less: then it was
    /// started in between.
    private static func hasLess(_ sample: ServiceSample, than previous: ServiceSample) -> Bool {
        previous.figures.contains { name, value in
            guard name == uptime || isCounter(name), let now = sample.figures[name] else { return false }
            return now < value
        }
    }

    private static func isCounter(_ name: String) -> Bool {
        counters.contains(name) || prefixesOfCounters.contains { name.hasPrefix($0) }
    }

    /// The view as JSON.
    package var object: [String: Any] {
        let bases: [Base: String] = [.lastSample: "last-view", .start: "start", .restart: "restart"]
        var rates: [String: Any] = self.rates
        rates["proofs"] = proofRate
        return [
            "answered": true, "ratesSince": bases[base] ?? "", "seconds": seconds, "rates": rates, "shares": shares,
            "figures": sample.figures,
        ]
    }
}
