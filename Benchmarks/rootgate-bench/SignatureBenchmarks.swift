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
    // 2,048 different keys, more than a cache of a processor holds.
    let signed = try inParallel(scale.size(2048, tiny: 256)) { number throws(ServiceError) in
        let key = try PrivateKey()
        let digest = SHA256.hash(Array("\(number)".utf8))
        return (point: key.uncompressedPoint, scalars: try key.sign(digest), digest: digest)
    }
    let points = signed.flatMap(\.point)
    var outcomes = [SignatureOutcome](repeating: .invalid, count: batch)
    let material = try BareVerification.Material()
    let rounds = try points.withUnsafeBytes { points in
        let checks = signed.indices.map { index in
            SignatureCheck(
                point: UnsafeRawBufferPointer(rebasing: points[65 * index..<65 * index + 65]),
                scalars: signed[index].scalars, digest: signed[index].digest)
        }
        let verify = try makeVerifier(checks)
        var next = 0
        return try scale.alternate {
            try scale.rate(items: batch) {
                try checks.withUnsafeBufferPointer { checks in
                    try outcomes.withUnsafeMutableBufferPointer { outcomes in
                        try verify(UnsafeBufferPointer(rebasing: checks[next..<next + batch]), outcomes)
                    }
                }
                precondition(outcomes.allSatisfy { $0 == .valid }, "a genuine signature was refused")
                next = (next + batch) % checks.count
            }
        } _: {
            material.rate(seconds: scale.seconds)
        }
    }
    return Measurement(name, unit: "signatures/s", rounds: rounds, against: "ECDSA_do_verify, prepared")
}
