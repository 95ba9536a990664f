let proofBenchmarks = [
    Benchmark(
        "proof.new.process", "whole signed proofs in process, 1 M roots, every key new, all cores", seconds: 45,
        setUpShare: 0.7
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.inProcess()
        } _: {
            bench.bare()
        }
        return Measurement("proof.new.process", unit: "proofs/s", rounds: rounds, against: onAllCores)
    },
    loopback(
        "proof.new.loopback",
        "signed proofs by new keys over loopback TCP, in batches of 256, load generator on the same cores"),
    loopback(
        "proof.known.loopback", "signed proofs by known keys (granted before) over loopback TCP, in batches of 256",
        knownPercent: 100),
    loopback(
        "proof.openssl.loopback", "proof.new.loopback with OpenSSL's arithmetic alone", hasKernels: false),
    Benchmark("proof.new.loopback.single", "one proof a request, 256 connections with one request in flight") { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.overLoopback(.singles(connections: 256))
        } _: {
            try bench.overLoopback()
        }
        return Measurement(
            "proof.new.loopback.single", unit: "proofs/s", rounds: rounds, against: "proof.new.loopback",
            conditions: bench.conditions(.singles(connections: 256)))
    },
    Benchmark(
        "proof.new.unix.single", "one proof a request over a local socket, 256 connections with one request in flight"
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let traffic = Traffic.singles(connections: 256, isLocal: true)
        let rounds = try scale.alternate {
            try bench.overLoopback(traffic)
        } _: {
            try bench.overLoopback(.singles(connections: 256))
        }
        return Measurement(
            "proof.new.unix.single", unit: "proofs/s", rounds: rounds, against: "proof.new.loopback.single",
            conditions: bench.conditions(traffic))
    },
    loopback(
        "proof.new.loopback.single64", "one proof a request, 64 connections with one request in flight",
        .singles(connections: 64)),
    Benchmark("bare.single64", "the messages and signatures of proof.new.loopback.single64, and nothing else") {
        scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let bare = try BareService(threads: bench.cores, scale)
        let rounds = try scale.alternate {
            try bench.bareExchanges(bare, connections: 64)
        } _: {
            bench.bare()
        }
        return Measurement("bare.single64", unit: "exchanges/s", rounds: rounds, against: onAllCores)
    },
    Benchmark(
        "inclusion.loopback", "proofs without a signature over loopback TCP, batches of 256, 3 siblings, 1 M roots"
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let values = try scale.repeated { try bench.inclusion() }
        return Measurement(
            "inclusion.loopback", unit: "proofs/s", values: values,
            conditions: bench.conditions(.batches, seconds: scale.seconds))
    },
    pipelined("proof.new.loopback", "proof.new.loopback with one proof a request"),
    pipelined("proof.known.loopback", "proof.known.loopback with one proof a request", knownPercent: 100),
    Benchmark("inclusion.loopback.pipelined", "inclusion.loopback with one proof a request") { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.inclusion(.pipelined)
        } _: {
            try bench.inclusion()
        }
        return Measurement(
            "inclusion.loopback.pipelined", unit: "proofs/s", rounds: rounds, against: "inclusion.loopback",
            conditions: bench.conditions(.pipelined, seconds: scale.seconds))
    },
    Benchmark("client.verify.tasks", "256 tasks that share one RootgateClient, one proof a call", seconds: 15) {
        scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.clientTasks(256)
        } _: {
            try bench.overLoopback()
        }
        return Measurement(
            "client.verify.tasks", unit: "proofs/s", rounds: rounds, against: "proof.new.loopback",
            conditions: bench.conditions([.threads, .roots, .round(seconds: scale.sendingSeconds)]))
    },
    Benchmark("latency.lone", "median time of a lone proof over the wire, service idle between") { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.loneLatency()
        } _: {
            bench.bareLatency()
        }
        return Measurement("latency.lone", unit: "us", rounds: rounds, against: "one ECDSA_do_verify")
    },
    Benchmark("bare.lone", "the messages and the signature of latency.lone, and nothing else") { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let bare = try BareService(threads: 1, scale)
        let rounds = try scale.alternate {
            try bench.loneLatency(bare)
        } _: {
            bench.bareLatency()
        }
        return Measurement("bare.lone", unit: "us", rounds: rounds, against: "one ECDSA_do_verify")
    },
    Benchmark(
        "latency.half", "99th percentile at half the highest rate, single proofs on 256 connections", seconds: 15
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let highest = try highestRate(bench, scale)
        let values = try scale.repeated { try bench.lateLatency(lateTraffic(scale), highest: highest) }
        return Measurement(
            "latency.half", unit: "us", values: values, conditions: bench.conditions(lateTraffic(scale)))
    },
    Benchmark(
        "latency.half.apart",
        "latency.half with one thread of the service and the load generator on a processor each", seconds: 15
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        return try bench.apart {
            let traffic = lateTraffic(scale)
            let highest = try highestRate(bench, scale)
            let rounds = try scale.alternate {
                try bench.lateLatency(traffic, highest: highest)
            } _: {
                bench.latencyOfGaps(highest: highest)
            }
            return Measurement(
                "latency.half.apart", unit: "us", rounds: rounds, against: "the processors' gaps alone",
                conditions: bench.conditions(traffic))
        }
    },
    Benchmark("scale.roots", "proof.new.loopback with 10 M roots", seconds: 120, setUpShare: 0.8) { scale in
        let few = try ProofBench(scale, roots: scale.size(10_000, tiny: 1000))
        let many = try ProofBench(scale, roots: scale.size(10_000_000, tiny: 5000))
        let rounds = try scale.alternate {
            try many.overLoopback()
        } _: {
            try few.overLoopback()
        }
        return Measurement(
            "scale.roots", unit: "proofs/s", rounds: rounds, against: "the same with 10 k roots",
            conditions: many.conditions(.batches))
    },
]

private func lateTraffic(_ scale: Scale) -> Traffic { .singles(connections: scale.size(256, tiny: 8)) }

private func highestRate(_ bench: ProofBench, _ scale: Scale) throws -> Double {
    median(try (0..<3).map { _ in try bench.overLoopback(lateTraffic(scale)) })
}

private let onAllCores = "ECDSA_do_verify, all cores"

/// Signed proofs over loopback in alternation with OpenSSL alone.
private func loopback(
    _ name: String, _ about: String, _ traffic: Traffic = .batches, hasKernels: Bool = true, knownPercent: Int = 0
) -> Benchmark {
    Benchmark(name, about, seconds: 15) { scale in
        let bench = try ProofBench.withMillionRoots(scale, hasKernels: hasKernels, knownPercent: knownPercent)
        let rounds = try scale.alternate {
            try bench.overLoopback(traffic)
        } _: {
            bench.bare()
        }
        return Measurement(
            name, unit: "proofs/s", rounds: rounds, against: onAllCores, conditions: bench.conditions(traffic))
    }
}

/// The load of a benchmark over loopback with one proof a request and many requests in flight, in alternation with that
/// benchmark's own batches.
private func pipelined(_ batches: String, _ about: String, knownPercent: Int = 0) -> Benchmark {
    let name = batches + ".pipelined"
    return Benchmark(name, about, seconds: 15) { scale in
        let bench = try ProofBench.withMillionRoots(scale, knownPercent: knownPercent)
        let rounds = try scale.alternate {
            try bench.overLoopback(.pipelined)
        } _: {
            try bench.overLoopback()
        }
        return Measurement(
            name, unit: "proofs/s", rounds: rounds, against: batches, conditions: bench.conditions(.pipelined))
    }
}
