import Core
import Hashing
import LoadHarness
import Signatures

let signatureBenchmarks = [
    Benchmark(name: "signature.new.b256") { scale in
        // 2,048 different keys, so that no cache of anybody's knows them.
        let signed = try inParallel(scale.size(2048, tiny: 256)) { number throws(ServiceError) in
            let key = try PrivateKey()
            let digest = SHA256.hash(Array("\(number)".utf8))
            return (point: key.uncompressedPoint, scalars: try key.sign(digest), digest: digest)
        }
        let points = signed.flatMap(\.point)
        let verifier = try SignatureVerifier(SignatureEngine(SignatureEngine.Configuration()))
        var outcomes = [SignatureOutcome](repeating: .invalid, count: 256)
        let material = try BareVerification.Material()
        let rounds = try points.withUnsafeBytes { points in
            let checks = signed.indices.map { index in
                SignatureCheck(
                    point: UnsafeRawBufferPointer(rebasing: points[65 * index..<65 * index + 65]),
                    scalars: signed[index].scalars, digest: signed[index].digest)
            }
            var next = 0
            return try scale.alternate {
                try scale.rate(items: 256) {
                    try checks.withUnsafeBufferPointer { checks in
                        try outcomes.withUnsafeMutableBufferPointer { outcomes in
                            try verifier.verify(UnsafeBufferPointer(rebasing: checks[next..<next + 256]), into: outcomes)
                        }
                    }
                    precondition(outcomes.allSatisfy { $0 == .valid }, "a genuine signature was refused")
                    next = (next + 256) % checks.count
                }
            } _: {
                material.rate(seconds: scale.seconds)
            }
        }
        return Measurement(
            "signature.new.b256", unit: "signatures/s", rounds: rounds, against: "ECDSA_do_verify, prepared")
    }
]
