import Core
import Hashing
import Kernels
import LoadHarness
import Signatures

let signatureBenchmarks = [
    Benchmark("signature.new.b8", "signatures by new keys, 8 at a time, one core") { scale in
        try signatures("signature.new.b8", batch: 8, scale) { _ in try newKeyVerifier() }
    },
    Benchmark("signature.new.b256", "signatures by new keys, 256 at a time, one core") { scale in
        try signatures("signature.new.b256", batch: 256, scale) { _ in try newKeyVerifier() }
    },
    Benchmark("signature.known.b256", "signatures by known keys, 256 at a time, one core") { scale in
        try signatures("signature.known.b256", batch: 256, scale) { try knownKeyVerifier($0) }
    },
]

/// The same rows for each kernel that this machine can run, whatever a service would use.
let signatureKernelBenchmarks = Kernel.runnable(with: .permitted).filter { $0.kind == .signatures }.flatMap { kernel in
    let name = kernel.shortName
    return [
        Benchmark(
            "signature.new.b8.\(name)", "signatures by new keys, 8 at a time, one core, with \(kernel.name) alone"
        ) { scale in
            try signatures("signature.new.b8.\(name)", batch: 8, scale) { _ in try newKeyVerifier(kernel) }
        },
        Benchmark(
            "signature.new.b256.\(name)", "signatures by new keys, 256 at a time, one core, with \(kernel.name) alone"
        ) { scale in
            try signatures("signature.new.b256.\(name)", batch: 256, scale) { _ in try newKeyVerifier(kernel) }
        },
        Benchmark(
            "signature.known.b256.\(name)",
            "signatures by known keys, 256 at a time, one core, with \(kernel.name) alone"
        ) { scale in
            try signatures("signature.known.b256.\(name)", batch: 256, scale) { try knownKeyVerifier($0, kernel) }
        },
    ]
}

/// Batches of genuine signatures on one thread, each by a key of its own.
private func signatures(
    _ name: String, batch: Int, _ scale: Scale, _ makeVerifier: ([SignatureCheck]) throws -> VerifyBatch
) throws -> Measurement {
    let material = try BareVerification.Material()
    let rounds = try GenuineSignatures(scale).withChecks { checks in
        let verify = try makeVerifier(checks)
        var batches = SignatureBatches(checks)
        return try scale.alternate {
            try scale.rate(items: batch) { try batches.verifyNext(batch, verify) }
        } _: {
            material.rate(seconds: scale.seconds)
        }
    }
    return Measurement(name, unit: "signatures/s", rounds: rounds, against: "ECDSA_do_verify, prepared")
}

/// 2,048 signatures by different keys, more than a cache of a processor holds.
struct GenuineSignatures: Sendable {
    private let points: [UInt8]
    private let signed: [(scalars: ScalarPair, digest: Digest)]

    init(_ scale: Scale) throws {
        let made = try inParallel(scale.size(2048, tiny: 256)) { number throws(ServiceError) in
            let key = try PrivateKey()
            let digest = SHA256.hash(Array("\(number)".utf8))
            return (point: key.uncompressedPoint, scalars: try key.sign(digest), digest: digest)
        }
        points = made.flatMap(\.point)
        signed = made.map { ($0.scalars, $0.digest) }
    }

    func withChecks<Result>(_ body: ([SignatureCheck]) throws -> Result) rethrows -> Result {
        try points.withUnsafeBytes { points in
            try body(
                signed.indices.map { index in
                    SignatureCheck(
                        point: UnsafeRawBufferPointer(rebasing: points[65 * index..<65 * index + 65]),
                        scalars: signed[index].scalars, digest: signed[index].digest)
                })
        }
    }
}

/// One batch after the other of some checks, again and again.
struct SignatureBatches {
    private let checks: [SignatureCheck]
    private var outcomes: [SignatureOutcome] = []
    private var next = 0

    init(_ checks: [SignatureCheck]) { self.checks = checks }

    /// Verifies the next `size` checks, of which there are as many at least.
    mutating func verifyNext(_ size: Int, _ verify: VerifyBatch) throws {
        if next + size > checks.count { next = 0 }
        if outcomes.count < size { outcomes = [SignatureOutcome](repeating: .invalid, count: size) }
        let next = next
        try checks.withUnsafeBufferPointer { checks in
            try outcomes.withUnsafeMutableBufferPointer { outcomes in
                let outcomes = UnsafeMutableBufferPointer(rebasing: outcomes[..<size])
                outcomes.update(repeating: .invalid)
                try verify(UnsafeBufferPointer(rebasing: checks[next..<next + size]), outcomes)
                precondition(outcomes.allSatisfy { $0 == .valid }, "a genuine signature was refused")
            }
        }
        self.next = next + size
    }
}

// MARK: Kernels by size of batch

/// What each kernel and libcrypto verify in a second, by the number of signatures that are verified together.
func signaturesByKernel(_ scale: SweepScale) throws -> SweepResult {
    let sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    let kernels = Kernel.runnable(with: .permitted).filter { $0.kind == .signatures }
    let libcrypto = try BareVerification.Material()
    return try GenuineSignatures(scale.scale).withChecks { checks in
        func rates(_ verify: VerifyBatch) throws -> [[Double]] {
            try sizes.map { size in
                var batches = SignatureBatches(checks)
                return try scale.scale.repeated {
                    try scale.scale.rate(items: size) { try batches.verifyNext(size, verify) }
                }
            }
        }
        var new: [Plot.Series] = [], known: [Plot.Series] = []
        for (number, kernel) in kernels.enumerated() {
            scale.show("kernel", number + 1, number: number, of: kernels.count)
            new.append(Plot.Series(kernel.shortName, sizes, try rates(newKeyVerifier(kernel))))
            known.append(Plot.Series(kernel.shortName, sizes, try rates(knownKeyVerifier(checks, kernel))))
        }
        let alone = scale.scale.repeated { libcrypto.rate(seconds: scale.scale.seconds) }
        let baseline = Plot.Series("libcrypto", sizes, sizes.map { _ in alone })
        func plot(_ keys: String, _ series: [Plot.Series]) -> Plot {
            Plot(
                title: "Signatures per second by \(keys) keys, one core, for each kernel",
                x: Plot.Axis(label: "signatures at once", isLogarithmic: true, ticks: sizes.map { Double($0) }),
                y: Plot.Axis(label: "signatures/s", isLogarithmic: true), series: series + [baseline])
        }
        return SweepResult(
            header: ["at once"] + kernels.flatMap { ["\($0.shortName), new", "known"] } + ["libcrypto"],
            rows: sizes.indices.map { index in
                [grouped(sizes[index])]
                    + zip(new, known).flatMap { [rounded($0.points[index].y), rounded($1.points[index].y)] }
                    + [rounded(baseline.points[index].y)]
            },
            plots: [plot("new", new), plot("known", known)],
            conditions: "2,048 keys, one thread, rounds of \(scale.scale.seconds) s")
    }
}
