import Core
import Foundation
import LoadHarness

/// One question of how a figure depends on something, answered by measuring it at several points.
struct Sweep: Sendable {
    let name: String
    let title: String
    /// What is measured and how, in a sentence or two.
    let about: String
    let run: @Sendable (SweepScale) throws -> SweepResult
}

/// A table and the plots of what is in it.
struct SweepResult {
    let header: [String]
    let rows: [[String]]
    let plots: [Plot]
}

/// How large and how long sweeps are.
struct SweepScale {
    let scale: Scale
    /// Whether 100 million roots are among the sizes.
    let isHuge: Bool

    var rounds: Int { scale.isTiny ? 1 : 3 }
    var seconds: Double { scale.isTiny ? 0.02 : 0.35 }

    /// The rates of several rounds, each of about `seconds`. `rate` gets the number of proofs to send, at
    /// least `fewest`; a first round that does not count tells how many that is.
    func rates(fewest: Int, _ rate: (Int) throws -> Double) rethrows -> [Double] {
        let first = max(fewest, scale.size(1024, tiny: 64))
        let expected = Int(try rate(first) * seconds)
        let proofs = min(max(expected, first), max(scale.size(48_000, tiny: 64), fewest))
        return try (0..<rounds).map { _ in try rate(proofs) }
    }

    func rates(_ bench: ProofBench, _ traffic: Traffic) throws -> [Double] {
        // Enough for every connection to be busy most of the time.
        let fewest = min(max(scale.size(2, tiny: 1) * traffic.window, scale.size(1024, tiny: 64)), 65_536)
        return try rates(fewest: fewest) { try bench.drive(traffic, proofs: $0).proofsPerSecond }
    }
}

let sweeps = [
    Sweep(
        name: "batch", title: "Proofs per second by batch size",
        about: "Signed proofs by new keys over loopback, 4 connections with 2 requests in flight each."
    ) { scale in
        let sizes = [1, 4, 8, 16, 32, 64, 128, 256, 1024]
        let bench = try ProofBench.withMillionRoots(scale.scale)
        return try SweepResult(
            sizes, "proofs in a request", isLogarithmic: true, unit: "proofs/s",
            title: "Proofs per second by batch size"
        ) {
            try scale.rates(bench, Traffic(connections: 4, depth: 2, batch: $0))
        }
    },
    Sweep(
        name: "connections", title: "Proofs per second by connections",
        about: "Signed proofs by new keys over loopback, one request of one proof in flight on each connection."
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale.scale)
        return try SweepResult(
            [1, 4, 16, 64, 256, 1024], "connections", isLogarithmic: true, unit: "proofs/s",
            title: "Proofs per second by connections"
        ) {
            try scale.rates(bench, .singles(connections: $0))
        }
    },
    Sweep(
        name: "roots", title: "Look-ups and proofs per second by number of roots",
        about: """
            Look-ups of roots in batches of 256 on one core, half of them present, and signed proofs by known keys \
            over loopback in batches of 256. 5 roots a collaboration; the collaboration that proves itself has \
            one root for every person and is the same everywhere.
            """,
        run: byRoots),
    Sweep(
        name: "known", title: "Proofs per second by share of known keys",
        about: """
            Signed proofs over loopback in batches of 256. A key is known when proofs of it were granted before; \
            known keys take turns, the others are new each time.
            """
    ) { scale in
        try SweepResult(
            [0, 25, 50, 75, 90, 100], "proofs by known keys (%)", unit: "proofs/s",
            title: "Proofs per second by share of known keys"
        ) { share in
            try scale.rates(ProofBench.withMillionRoots(scale.scale, knownPercent: share), .batches)
        }
    },
    Sweep(
        name: "threads", title: "Proofs per second by threads",
        about: """
            Signed proofs over loopback in batches of 256, by new and by known keys; the load generator, one \
            thread, shares the cores with the service.
            """,
        run: byThreads),
    Sweep(
        name: "latency", title: "Latency by load",
        about: """
            Requests of one proof by a new key on 256 connections, sent at random moments (Poisson arrivals) \
            whether or not earlier ones are answered, at a share of the rate that the same connections reach when \
            each waits for its answer. Counted from the moment when a request was due, so that waiting in the load \
            generator counts too.
            """,
        run: byLoad),
]

private func byRoots(_ scale: SweepScale) throws -> SweepResult {
    var sizes = [10_000, 100_000, 1_000_000, 10_000_000] + (scale.isHuge ? [100_000_000] : [])
    if scale.scale.isTiny { sizes = [1000, 2000, 5000] }
    var bench: ProofBench?
    var measured: [(lookups: [Double], proofs: [Double])] = []
    for size in sizes {
        let grown = try bench ?? ProofBench(scale.scale, roots: size)
        bench = grown
        try grown.grow(to: size)
        // Known keys: where a proof costs least, a slow look-up shows most.
        try grown.restart(knownPercent: 100)
        let probe = try MembershipProbe(roots: size)
        _ = try probe.rate(in: grown.rootSets, scale.scale)
        let lookups = try (0..<scale.rounds).map { _ in try probe.rate(in: grown.rootSets, scale.scale) }
        measured.append((lookups, try scale.rates(grown, .batches)))
    }
    let axis = Plot.Axis(label: "roots", isLogarithmic: true, ticks: sizes.map { Double($0) })
    return SweepResult(
        header: ["roots", "look-ups/s", "lowest to highest", "proofs/s", "lowest to highest"],
        rows: zip(sizes, measured).map { size, measured in
            [grouped(size), rounded(median(measured.lookups)), range(measured.lookups)]
                + [rounded(median(measured.proofs)), range(measured.proofs)]
        },
        plots: [
            Plot(
                title: "Membership look-ups per second by number of roots, one core", x: axis,
                y: Plot.Axis(label: "look-ups/s"), series: [Plot.Series("look-ups", sizes, measured.map(\.lookups))]),
            Plot(
                title: "Proofs per second by number of roots", x: axis, y: Plot.Axis(label: "proofs/s"),
                series: [Plot.Series("proofs", sizes, measured.map(\.proofs))]),
        ])
}

private func byThreads(_ scale: SweepScale) throws -> SweepResult {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let counts = Array(1...max(1, cores))
    func rates(knownPercent: Int) throws -> [[Double]] {
        try counts.map { count in
            let bench = try ProofBench.withMillionRoots(scale.scale, workers: count, knownPercent: knownPercent)
            return try scale.rates(bench, .batches)
        }
    }
    let new = try rates(knownPercent: 0)
    let known = try rates(knownPercent: 100)
    return SweepResult(
        header: ["threads", "new keys, proofs/s", "lowest to highest", "known keys, proofs/s", "lowest to highest"],
        rows: counts.indices.map { index in
            [grouped(counts[index]), rounded(median(new[index])), range(new[index])]
                + [rounded(median(known[index])), range(known[index])]
        },
        plots: [
            Plot(
                title: "Proofs per second by threads",
                x: Plot.Axis(
                    label: "threads of the service", ticks: counts.count > 16 ? nil : counts.map { Double($0) }),
                y: Plot.Axis(label: "proofs/s"),
                series: [Plot.Series("new keys", counts, new), Plot.Series("known keys", counts, known)])
        ])
}

private func byLoad(_ scale: SweepScale) throws -> SweepResult {
    let bench = try ProofBench.withMillionRoots(scale.scale)
    let traffic = Traffic.singles(connections: scale.scale.size(256, tiny: 8))
    let highest = median(try scale.rates(bench, traffic))
    let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)]
    let shares = scale.scale.isTiny ? [10, 50, 95] : [10, 20, 30, 40, 50, 60, 70, 80, 90, 95]
    // By share, then by quantile: microseconds of each round.
    let measured = try shares.map { share in
        let rate = highest * Double(share) / 100
        let proofs = scale.scale.size(min(30_000, max(1000, Int(rate * 0.6))), tiny: 100)
        let reports = try (0..<scale.rounds).map { _ in try bench.drive(traffic, proofs: proofs, perSecond: rate) }
        return quantiles.map { quantile in reports.map { Double($0.latency.quantile(quantile.1)) / 1000 } }
    }
    return SweepResult(
        header: ["load (% of the highest rate)", "requests/s"] + quantiles.map { "\($0.0), us" },
        rows: zip(shares, measured).map { share, measured in
            [grouped(share), rounded(highest * Double(share) / 100)] + measured.map { rounded(median($0)) }
        },
        plots: [
            Plot(
                title: "Latency by load, requests of one proof",
                x: Plot.Axis(label: "load (% of \(rounded(highest)) requests/s)", ticks: shares.map { Double($0) }),
                y: Plot.Axis(label: "microseconds", isLogarithmic: true),
                series: quantiles.indices.map { index in
                    Plot.Series(quantiles[index].0, shares, measured.map { [median($0[index])] })
                })
        ])
}

extension SweepResult {
    /// The figures of `measure` at each of `values`.
    init(
        _ values: [Int], _ what: String, isLogarithmic: Bool = false, unit: String, title: String,
        _ measure: (Int) throws -> [Double]
    ) rethrows {
        let figures = try values.map(measure)
        header = [what, unit, "lowest to highest"]
        rows = zip(values, figures).map { [grouped($0), rounded(median($1)), range($1)] }
        plots = [
            Plot(
                title: title,
                x: Plot.Axis(label: what, isLogarithmic: isLogarithmic, ticks: values.map { Double($0) }),
                y: Plot.Axis(label: unit), series: [Plot.Series(unit, values, figures)])
        ]
    }
}

extension Plot.Series {
    /// The median at each of `values`, with the lowest and highest round around it.
    fileprivate init(_ name: String, _ values: [Int], _ figures: [[Double]]) {
        self.name = name
        points = zip(values, figures).map { value, figures in
            Plot.Point(
                x: Double(value), y: median(figures),
                spread: figures.count > 1 ? (figures.min() ?? 0)...(figures.max() ?? 0) : nil)
        }
    }
}

private func range(_ figures: [Double]) -> String {
    "\(rounded(figures.min() ?? 0)) to \(rounded(figures.max() ?? 0))"
}
