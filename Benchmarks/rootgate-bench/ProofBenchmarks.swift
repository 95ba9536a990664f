let proofBenchmarks = [
    Benchmark("proof.new.process", "whole signed proofs in process, 1 M roots, every key new, all cores") { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.inProcess()
        } _: {
            bench.bare()
        }
        return Measurement("proof.new.process", unit: "proofs/s", rounds: rounds, against: onAllCores)
    },
    Benchmark(
        "proof.new.loopback", "the same over loopback TCP in batches of 256, load generator on the same cores"
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.overLoopback()
        } _: {
            bench.bare()
        }
        return Measurement("proof.new.loopback", unit: "proofs/s", rounds: rounds, against: onAllCores)
    },
    Benchmark("proof.known.loopback", "the same, every key with proofs that were granted before") { scale in
        let bench = try ProofBench.withMillionRoots(scale, knownPercent: 100)
        let rounds = try scale.alternate {
            try bench.overLoopback()
        } _: {
            bench.bare()
        }
        return Measurement("proof.known.loopback", unit: "proofs/s", rounds: rounds, against: onAllCores)
    },
    Benchmark("proof.openssl.loopback", "proof.new.loopback with OpenSSL's arithmetic alone") { scale in
        let bench = try ProofBench.withMillionRoots(scale, hasKernels: false)
        let rounds = try scale.alternate {
            try bench.overLoopback()
        } _: {
            bench.bare()
        }
        return Measurement("proof.openssl.loopback", unit: "proofs/s", rounds: rounds, against: onAllCores)
    },
    Benchmark("proof.new.loopback.single", "one proof a request, 256 connections with one request in flight") { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.overLoopback(.singles(connections: 256))
        } _: {
            try bench.overLoopback()
        }
        return Measurement("proof.new.loopback.single", unit: "proofs/s", rounds: rounds, against: "proof.new.loopback")
    },
    Benchmark("proof.new.loopback.single64", "one proof a request, 64 connections with one request in flight") {
        scale in
        let bench = try ProofBench.withMillionRoots(scale)
        let rounds = try scale.alternate {
            try bench.overLoopback(.singles(connections: 64))
        } _: {
            bench.bare()
        }
        return Measurement("proof.new.loopback.single64", unit: "proofs/s", rounds: rounds, against: onAllCores)
    },
    Benchmark(
        "inclusion.loopback", "proofs without a signature over loopback TCP, batches of 256, 3 siblings, 1 M roots"
    ) { scale in
        let bench = try ProofBench.withMillionRoots(scale)
        return Measurement("inclusion.loopback", unit: "proofs/s", values: try scale.repeated { try bench.inclusion() })
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
    Benchmark("scale.roots", "proof.new.loopback with 10 M roots") { scale in
        let few = try ProofBench(scale, roots: scale.size(10_000, tiny: 1000))
        let many = try ProofBench(scale, roots: scale.size(10_000_000, tiny: 5000))
        let rounds = try scale.alternate {
            try many.overLoopback()
        } _: {
            try few.overLoopback()
        }
        return Measurement("scale.roots", unit: "proofs/s", rounds: rounds, against: "the same with 10 k roots")
    },
]

private let onAllCores = "ECDSA_do_verify, all cores"
