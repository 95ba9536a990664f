import Core
import Foundation
import LoadHarness

let allSweeps = [
    Sweep(
        name: "kernels", title: "Signatures per second by kernel",
        about: """
            Genuine signatures, each by a key of its own, on one core: with each kernel that the machine can run, \
            alone, and with libcrypto one at a time. Known keys have tables.
            """, seconds: 120,
        run: signaturesByKernel),
    Sweep(
        name: "batch", title: "Proofs per second by batch size",
        about: "Signed proofs by new keys over loopback, 4 connections with 2 requests in flight each.", seconds: 80
    ) { scale in
        let sizes = [1, 4, 8, 16, 32, 64, 128, 256, 1024]
        let bench = try ProofBench.withMillionRoots(scale.scale)
        return try SweepResult(
            sizes, "proofs in a request", isLogarithmic: true, unit: "proofs/s",
            title: "Proofs per second by batch size", scale,
            conditions: bench.conditions([.threads, .roots, scale.round])
        ) {
            try scale.rates(bench, Traffic(connections: 4, depth: 2, batch: $0))
        }
    },
    Sweep(
        name: "connections", title: "Proofs per second by connections",
        about: "Signed proofs by new keys over loopback, one request of one proof in flight on each connection.",
        seconds: 50
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale.scale)
        return try SweepResult(
            [1, 4, 16, 64, 256, 1024], "connections", isLogarithmic: true, unit: "proofs/s",
            title: "Proofs per second by connections", scale,
            conditions: bench.conditions([.threads, .roots, scale.round])
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
            """, seconds: 150,
        run: byRoots),
    Sweep(
        name: "known", title: "Proofs per second by share of known keys",
        about: """
            Signed proofs over loopback in batches of 256. A key is known when proofs of it were granted before; \
            known keys take turns, the others are new each time.
            """, seconds: 90
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale.scale)
        return try SweepResult(
            [0, 25, 50, 75, 90, 100], "proofs by known keys (%)", unit: "proofs/s",
            title: "Proofs per second by share of known keys", scale, conditions: bench.conditions(.batches)
        ) { share in
            try scale.rates(ProofBench.withMillionRoots(scale.scale, knownPercent: share), .batches)
        }
    },
    Sweep(
        name: "threads", title: "Proofs per second by threads",
        about: """
            Signed proofs over loopback in batches of 256, by new and by known keys; the load generator, one \
            thread, shares the cores with the service.
            """, seconds: 60,
        run: byThreads),
    Sweep(
        name: "latency", title: "Latency by load",
        about: """
            Requests of one proof by a new key on 256 connections, sent at random moments (Poisson arrivals) \
            whether or not earlier ones are answered, at a share of the rate that the same connections reach when \
            each waits for its answer. Counted from the moment when a request was due, so that waiting in the load \
            generator counts too.
            """, seconds: 60,
        run: byLoad),
    Sweep(
        name: "soak", title: "Everything for a long time",
        about: """
            Two services of a cluster, each in a process of its own, with principals and audits. \
            \(grouped(Soak.proofsPerSecond)) requests of one proof a second by known keys, a tenth of them forgeries, \
            over connections that are new every ten seconds, to the services in turn. Meanwhile clients change root \
            hashes, follow the change log at the other service, share documents, post notices to live followers, stop \
            sharing, and open connections that send nothing, a part of a frame, or what is no frame.

            Over TLS devices open documents, their grants are checked, and shelves are filled and read. A backup is \
            made every ten seconds. In the middle one service is restarted after the other, while the other one \
            answers every proof. At the end the audits are verified.

            Memory and files are those of both services. Slopes are medians of the rises between each two windows \
            before the restarts, and after them. The first half of each is left out where it is about memory and \
            files: the change log reaches its bound after a few minutes, and its pages are as full as they stay some \
            minutes later. The first fifth is left out where it is about time.

            A run of 20 minutes or more fails when the lower end of a slope's interval is above \
            \(Int(100 * grownMax.bytes)) % an hour for memory and files, or above \(Int(100 * grownMax.time)) % for \
            times.
            """, seconds: 60,
        run: overTime),
    Sweep(
        name: "partitions", title: Sizing.partitionsTitle,
        about: """
            The first 12 bits of the SHA-256 of a collaboration's identifier are its slot, and a table that every \
            sender has names the partition of each of the 4,096 slots. A slot moves to another partition in steps: \
            changes of its collaborations are refused, they are copied, the table names the new partition, the old one \
            drops them. Look-ups are never refused. The columns are a simulation with drawn sizes and popularities; \
            the move is run with storages.
            """, seconds: 30,
        run: byPartitions),
]

private func byRoots(_ scale: SweepScale) throws -> SweepResult {
    var sizes = [10_000, 100_000, 1_000_000, 10_000_000] + (scale.isHuge ? [100_000_000] : [])
    if scale.scale.isTiny { sizes = [1000, 2000, 5000] }
    var bench: ProofBench?
    var measured: [(lookups: [Double], proofs: [Double])] = []
    for (number, size) in sizes.enumerated() {
        scale.show("roots", size, number: number, of: sizes.count)
        let grown = try bench ?? ProofBench(scale.scale, roots: size)
        bench = grown
        try grown.grow(to: size)
        Machine.settle()
        // Proofs by known keys cost least, so that a slow look-up shows most.
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
            [grouped(size), rounded(median(measured.lookups)), lowestToHighest(measured.lookups)]
                + [rounded(median(measured.proofs)), lowestToHighest(measured.proofs)]
        },
        plots: [
            Plot(
                title: "Membership look-ups per second by number of roots, one core", x: axis,
                y: Plot.Axis(label: "look-ups/s"), series: [Plot.Series("look-ups", sizes, measured.map(\.lookups))]),
            Plot(
                title: "Proofs per second by number of roots", x: axis, y: Plot.Axis(label: "proofs/s"),
                series: [Plot.Series("proofs", sizes, measured.map(\.proofs))]),
        ], conditions: bench?.conditions([.traffic(.batches), .threads, scale.round]) ?? "")
}

private func byThreads(_ scale: SweepScale) throws -> SweepResult {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let counts = Array(1...max(1, cores))
    var conditions = ""
    func rates(knownPercent: Int) throws -> [[Double]] {
        try counts.map { count in
            let point = count - 1 + (knownPercent > 0 ? counts.count : 0)
            scale.show("threads", count, number: point, of: 2 * counts.count)
            let bench = try ProofBench.withMillionRoots(scale.scale, workers: count, knownPercent: knownPercent)
            conditions = bench.conditions([.traffic(.batches), .roots, scale.round])
            return try scale.rates(bench, .batches)
        }
    }
    let new = try rates(knownPercent: 0)
    let known = try rates(knownPercent: 100)
    return SweepResult(
        header: ["threads", "new keys, proofs/s", "lowest to highest", "known keys, proofs/s", "lowest to highest"],
        rows: counts.indices.map { index in
            [grouped(counts[index]), rounded(median(new[index])), lowestToHighest(new[index])]
                + [rounded(median(known[index])), lowestToHighest(known[index])]
        },
        plots: [
            Plot(
                title: "Proofs per second by threads",
                x: Plot.Axis(
                    label: "threads of the service", ticks: counts.count > 16 ? nil : counts.map { Double($0) }),
                y: Plot.Axis(label: "proofs/s"),
                series: [Plot.Series("new keys", counts, new), Plot.Series("known keys", counts, known)])
        ], conditions: conditions)
}

private func byLoad(_ scale: SweepScale) throws -> SweepResult {
    let bench = try ProofBench.withMillionRoots(scale.scale)
    let traffic = Traffic.singles(connections: scale.scale.size(256, tiny: 8))
    let highest = median(try scale.rates(bench, traffic))
    let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)]
    let shares = scale.scale.isTiny ? [10, 50, 95] : [10, 20, 30, 40, 50, 60, 70, 80, 90, 95]
    // By share, then by quantile: microseconds of each round.
    let measured = try shares.enumerated().map { number, share in
        scale.show("load in %", share, number: number, of: shares.count)
        let rate = highest * Double(share) / 100
        let proofs = scale.scale.size(min(30_000, max(1000, Int(rate * 1.5 * scale.scale.seconds))), tiny: 100)
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
        ], conditions: bench.conditions(traffic, seconds: 1.5 * scale.scale.seconds))
}

private func overTime(_ scale: SweepScale) throws -> SweepResult {
    let seconds = scale.scale.isTiny ? 1.2 : scale.soakSeconds
    let soak = Soak(seconds: seconds, windowSeconds: scale.scale.isTiny ? 0.2 : 10, progress: scale.scale.progress)
    let outcome = try soak.run()
    let (windows, deeds) = (outcome.windows, outcome.deeds)
    let quantities: [(name: String, isTime: Bool, figure: (Soak.Window) -> Double)] = [
        ("resident memory, MiB", false, { $0.resident / Double(1 << 20) }),
        ("data files, MiB", false, { $0.file / Double(1 << 20) }),
        ("in use in the data files, MiB", false, { $0.used / Double(1 << 20) }),
        ("median of a proof, us", true, \.median), ("99th percentile of a proof, us", true, \.late),
    ]
    var grown: [String] = []
    let rows = quantities.map { quantity in
        let settled = windows.map { $0.dropFirst($0.count / (quantity.isTime ? 5 : 2)) }
        let figures = settled.joined().map { quantity.figure($0) }
        let slope = Slope(settled.map { $0.map { ($0.minute / 60, quantity.figure($0)) } })
        let mean = figures.reduce(0, +) / Double(max(1, figures.count))
        let most = mean * (quantity.isTime ? grownMax.time : grownMax.bytes)
        if seconds >= 1200, let slope, slope.value - slope.margin > most {
            grown.append(
                "\(quantity.name): \(lowestToHighest(figures)), it grows by \(rounded(slope.value)) +- "
                    + "\(rounded(slope.margin)) an hour")
        }
        return [quantity.name, rounded(median(figures)), lowestToHighest(figures)]
            + [slope.map { "\(rounded($0.value)) +- \(rounded($0.margin))" } ?? "too short"]
            + [
                slope.map { "\(twoDecimals(100 * $0.value / mean)) % +- \(twoDecimals(100 * $0.margin / mean)) %" }
                    ?? ""
            ]
    }
    guard grown.isEmpty else { throw ServiceError(.internalFault, grown.joined(separator: "; ")) }
    func plot(_ title: String, _ unit: String, _ series: [(String, (Soak.Window) -> Double)]) -> Plot {
        Plot(
            title: title, x: Plot.Axis(label: "minutes; the services are restarted in the middle"),
            y: Plot.Axis(label: unit, isLogarithmic: unit == "microseconds"),
            series: series.map { name, figure in
                Plot.Series(name: name, points: windows.joined().map { Plot.Point(x: $0.minute, y: figure($0)) })
            })
    }
    return SweepResult(
        header: ["quantity", "median", "lowest to highest", "slope an hour, 95 %", "of the mean"], rows: rows,
        plots: [
            plot(
                "Memory and data files of both services over time", "MiB",
                [
                    ("resident memory", { $0.resident / Double(1 << 20) }),
                    ("data files", { $0.file / Double(1 << 20) }),
                    ("in use in the files", { $0.used / Double(1 << 20) }),
                ]),
            plot("Latency over time", "microseconds", [("p50", { $0.median }), ("p99", { $0.late })]),
        ],
        conditions: "\(twoDecimals(seconds / 60)) minutes, \(windows.joined().count) windows; besides the proofs "
            + "\(grouped(deeds.changes)) mutations of root sets, \(grouped(deeds.records)) records of the change log "
            + "followed, \(grouped(deeds.notices)) notices delivered, \(grouped(deeds.grants)) grants checked, "
            + "\(grouped(deeds.shares)) shares on shelves, \(grouped(deeds.backups)) backups, "
            + "\(grouped(deeds.strays)) stray connections, \(grouped(outcome.auditLines)) lines of audits verified")
}

/// How much may be certain to have grown in an hour, in parts of the mean.
private let grownMax = (bytes: 0.02, time: 0.5)

func lowestToHighest(_ figures: [Double]) -> String {
    "\(rounded(figures.min() ?? 0)) to \(rounded(figures.max() ?? 0))"
}
