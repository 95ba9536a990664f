import CKernels
import Core
import Foundation
import Hashing
import Kernels
@testable import Signatures
import TestSupport
import Testing

/// Signed digests by a few keys, some of them spoiled.
private struct Signed {
    let checks: [OwnedCheck]

    init(_ count: Int, keys keyCount: Int, seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let keys = try (0..<keyCount).map { _ in try PrivateKey(seed: generator.bytes(48)) }
        checks = try (0..<count).map { number in
            let key = keys[number % keyCount]
            var digest = SHA256.hash(generator.bytes(20))
            var scalars = try key.sign(digest)
            var point = number % 3 == 1 ? key.compressedPoint : key.uncompressedPoint
            switch generator.next() as UInt64 % 8 {
            case 0: digest = SHA256.hash(generator.bytes(20))
            case 1:
                scalars.r[Int.random(in: 0..<32, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            case 2: point[Int.random(in: 1..<point.count, using: &generator)] ^= 4
            default: break
            }
            return OwnedCheck(point: point, scalars: scalars, digest: digest)
        }
    }
}

private func configuration(knownKeyBytes: Int = 64 << 20, sampleInterval: Int = 0) -> SignatureEngine.Configuration {
    var configuration = SignatureEngine.Configuration()
    configuration.knownKeyBytesMax = knownKeyBytes
    configuration.sampleInterval = sampleInterval
    return configuration
}

@Suite("Signature engine", .enabled(if: testedKernel != nil, "ROOTGATE_CPU allows no signature kernel"))
struct SignatureEngineTests {
    @Test("The report names the kernel of these tests, and says when it is emulated")
    func names() throws {
        let names = testedEngine(configuration()).kernelNames
        print("the signature engine is tested with \(names.joined(separator: " and "))")
        #expect(!names.isEmpty)
        #expect(names.allSatisfy { $0.hasSuffix("emulated") } == (SignatureKernel.standard == nil))
    }

    @Test(
        "Batches of any size have libcrypto's outcomes",
        arguments: [1, 2, 7, 8, 9, 16, 17, 24, 25, 40, 129, 256, 257, 600])
    func agreement(size: Int) throws {
        let signed = try Signed(size, keys: max(1, size / 2), seed: runSeed &+ UInt64(size))
        let expected = try outcomes(of: signed.checks, by: SignatureVerifier())
        let found = try outcomes(of: signed.checks, by: SignatureVerifier(testedEngine(configuration())))
        #expect(found == expected, "seed \(runSeed)")
    }

    @Test("Kernels that are tested later take over from libcrypto in a verifier that is at work")
    func later() async throws {
        var later = configuration()
        later.vetsLater = true
        let engine = SignatureEngine(later)
        let verifier = try SignatureVerifier(engine)
        let signed = try Signed(100, keys: 7, seed: runSeed)
        let expected = try outcomes(of: signed.checks, by: SignatureVerifier())
        #expect(try outcomes(of: signed.checks, by: verifier) == expected, "seed \(runSeed)")
        guard SignatureKernel.standard != nil else { return }
        try await wait { !engine.kernelNames.isEmpty }
        #expect(try outcomes(of: signed.checks, by: verifier) == expected, "seed \(runSeed)")
        // The first batch of a kernel is checked as a whole.
        engine.finishCrossChecks()
        #expect(engine.statistics.crossChecks > 0 && engine.statistics.disagreements == 0)
    }

    /// Grants every valid check `times` times.
    private func grant(_ checks: [OwnedCheck], by verifier: SignatureVerifier, times: Int) throws {
        for _ in 0..<times {
            for (check, outcome) in zip(checks, try outcomes(of: checks, by: verifier)) where outcome == .valid {
                check.point.withUnsafeBytes { verifier.granted($0) }
            }
        }
    }

    private func wait(until condition: () -> Bool) async throws {
        for _ in 0..<500 where !condition() { try await Task.sleep(for: .milliseconds(10)) }
        #expect(condition())
    }

    @Test("A key has a table after its second grant, and the same outcomes with it")
    func knownKeys() async throws {
        let engine = testedEngine(configuration())
        let verifier = try SignatureVerifier(engine)
        let signed = try Signed(300, keys: 20, seed: runSeed)
        let expected = try outcomes(of: signed.checks, by: SignatureVerifier())
        try grant(signed.checks, by: verifier, times: 2)
        let keys = Set(zip(signed.checks, expected).filter { $0.1 == .valid }.map { $0.0.point }).count
        try await wait { engine.statistics.knownKeys == keys }
        let hits = engine.statistics.knownKeyHits
        #expect(try outcomes(of: signed.checks, by: verifier) == expected, "seed \(runSeed)")
        #expect(engine.statistics.knownKeyHits > hits)
        #expect(try engine.statistics.knownKeyBytes == keys * #require(testedKernel).knownKeyBytes)
        #expect(verifier.wasKnown(expected.firstIndex(of: .valid) ?? 0))
    }

    @Test("A key whose proofs were granted once has no table, nor has one that was never granted")
    func strangers() async throws {
        let engine = testedEngine(configuration())
        let verifier = try SignatureVerifier(engine)
        let checks = try Signed(40, keys: 40, seed: runSeed).checks
        try grant(checks, by: verifier, times: 1)
        for _ in 0..<3 { _ = try outcomes(of: checks, by: verifier) }
        try await Task.sleep(for: .milliseconds(50))
        #expect(engine.statistics.knownKeys == 0)
    }

    @Test("Every one of many keys that come in turn gets its table")
    func manyKeys() async throws {
        let engine = testedEngine(configuration(knownKeyBytes: 256 << 20))
        let verifier = try SignatureVerifier(engine)
        var generator = SeededGenerator(seed: runSeed)
        let count = SignatureKernel.standard == nil ? 150 : 1500
        let points = try (0..<count).map { _ in try PrivateKey(seed: generator.bytes(48)).uncompressedPoint }
        let end = ContinuousClock.now + patience
        while engine.statistics.knownKeys < points.count, .now < end {
            for point in points { point.withUnsafeBytes { verifier.granted($0) } }
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(engine.statistics.knownKeys == points.count, "seed \(runSeed)")
    }

    @Test(
        "So many keys may wait for their tables, and others wait for their next grant",
        .enabled(if: SignatureKernel.standard != nil, "an emulated kernel makes tables too slowly"))
    func waitingKeys() async throws {
        var generator = SeededGenerator(seed: runSeed)
        let count = Limits.knownKeysQueuedMax + 100
        let area = try (0..<count).flatMap { _ in try PrivateKey(seed: generator.bytes(48)).uncompressedPoint }
        let size = area.count / count
        for _ in 0..<50 {
            let engine = testedEngine(configuration(knownKeyBytes: 256 << 20))
            let known = try #require(engine.knownKeys)
            let elapsed = area.withUnsafeBytes { area in
                let points = (0..<count).map { UnsafeRawBufferPointer(rebasing: area[$0 * size..<($0 + 1) * size]) }
                var hashes = [UInt64](repeating: 0, count: count)
                points.withUnsafeBufferPointer { known.offer($0, hashes: &hashes) }
                return ContinuousClock().measure {
                    points.withUnsafeBufferPointer { known.offer($0, hashes: &hashes) }
                }
            }
            // The builder begins 5 ms after the first key. When this thread was held up for so long, it tries again.
            guard elapsed < .milliseconds(5) else { continue }
            try await wait { known.count >= Limits.knownKeysQueuedMax }
            try await Task.sleep(for: .milliseconds(100))
            #expect(known.count == Limits.knownKeysQueuedMax, "seed \(runSeed)")
            return
        }
        Issue.record("the keys could not be offered within 5 ms")
    }

    @Test("The memory of known keys has its bound, and evicts while others verify")
    func eviction() async throws {
        let bytesMin = KnownKeys.bytesMin(try #require(testedKernel))
        let engine = testedEngine(configuration(knownKeyBytes: bytesMin))
        // An emulated kernel is slow. There are more keys than places in either case.
        let isEmulated = SignatureKernel.standard == nil
        let signed = try Signed(isEmulated ? 48 : 240, keys: isEmulated ? 24 : 60, seed: runSeed)
        let expected = try outcomes(of: signed.checks, by: SignatureVerifier())
        try await withThrowingTaskGroup { group in
            for _ in 0..<3 {
                group.addTask {
                    let verifier = try SignatureVerifier(engine)
                    // Until a table was used, and a while longer.
                    for round in 0..<500 where round < (isEmulated ? 4 : 12) || engine.statistics.knownKeyHits == 0 {
                        #expect(
                            try outcomes(of: signed.checks, by: verifier) == expected, "seed \(runSeed), round \(round)"
                        )
                        try grant(signed.checks, by: verifier, times: 1)
                    }
                }
            }
            try await group.waitForAll()
        }
        // While tables are rebuilt, fewer are there.
        try await wait { engine.statistics.knownKeys > 0 }
        #expect(engine.statistics.knownKeys <= KnownKeys.ways)
        #expect(engine.statistics.knownKeyHits > 0)
    }

    @Test(
        "The memory of known keys has its bound with the tables of every kernel",
        arguments: Kernel.runnable(with: .permitted).filter { $0.p256 != nil })
    func tableSizes(kernel: Kernel) async throws {
        let used = SignatureKernel(untimed: [kernel])
        // Two sets of keys, and almost a third.
        let limit = 3 * KnownKeys.bytesMin(used) - 1
        let engine = SignatureEngine(configuration(knownKeyBytes: limit), kernel: used, log: .none)
        let verifier = try SignatureVerifier(engine)
        let signed = try Signed(160, keys: 80, seed: runSeed)
        let expected = try outcomes(of: signed.checks, by: SignatureVerifier())
        for round in 0..<500 where round < 6 || engine.statistics.knownKeys <= KnownKeys.ways {
            try grant(signed.checks, by: verifier, times: 1)
            #expect(try outcomes(of: signed.checks, by: verifier) == expected, "seed \(runSeed), round \(round)")
            #expect(engine.statistics.knownKeyBytes <= limit)
        }
        #expect(engine.statistics.knownKeys <= 2 * KnownKeys.ways)
        #expect(engine.statistics.knownKeyHits > 0)
    }

    @Test("A limit too small for one set of keys keeps no key")
    func noMemory() throws {
        let bytesMin = KnownKeys.bytesMin(try #require(testedKernel))
        let engine = testedEngine(configuration(knownKeyBytes: bytesMin - 1))
        let verifier = try SignatureVerifier(engine)
        let checks = try Signed(40, keys: 4, seed: runSeed).checks
        try grant(checks, by: verifier, times: 3)
        #expect(engine.statistics.knownKeys == 0)
        #expect(verifier.wasKnown(0))
    }
}

@Suite("Cross-check")
struct CrossCheckTests {
    /// A kernel that calls everything valid.
    private static let credulous: SignatureKernel = {
        let functions = UnsafeMutablePointer<rg_p256_functions>.allocate(capacity: 1)
        functions.initialize(
            to: rg_p256_functions(
                width: 16, workspace_bytes: 64, known_bytes: 64, known_form: 0, build_generator: { _, _ in },
                verify: { _, count, _, _, outcomes in
                    for index in 0..<count { outcomes?[index] = UInt8(RG_P256_VALID.rawValue) }
                },
                verify_known: { _, _, count, _, _, outcomes in
                    for index in 0..<count { outcomes?[index] = UInt8(RG_P256_VALID.rawValue) }
                },
                build_known: { _, _, _, _ in 0 }))
        return SignatureKernel(untimed: [Kernel(name: "credulous", p256: functions)])
    }()

    @Test("A kernel that disagrees with libcrypto is found, reported and switched off")
    func disagreement() throws {
        let lines = Lock<[String]>([])
        let log = Log { line in lines.withLock { $0.append("\(line)") } }
        let engine = SignatureEngine(configuration(sampleInterval: 4), kernel: CrossCheckTests.credulous, log: log)
        let verifier = try SignatureVerifier(engine)
        let signed = try Signed(64, keys: 8, seed: runSeed)
        let expected = try outcomes(of: signed.checks, by: SignatureVerifier())
        #expect(engine.kernelNames == ["credulous"])
        #expect(try outcomes(of: signed.checks, by: verifier).allSatisfy { $0 == .valid })
        engine.finishCrossChecks()
        let wrong = expected.count { $0 != .valid }
        #expect(engine.statistics.crossChecks == 64)
        #expect(engine.statistics.disagreements == UInt64(wrong))
        #expect(lines.withLock { $0.first }?.hasPrefix("CRITICAL") == true)
        #expect(engine.kernelNames.isEmpty)
        #expect(try outcomes(of: signed.checks, by: verifier) == expected, "seed \(runSeed)")
    }

    @Test("So many checks may wait for libcrypto, and one more is skipped")
    func waitingChecks() throws {
        let (hold, isHeld) = (DispatchSemaphore(value: 0), Shared(false))
        // The first check has a wrong outcome, and the line about it holds the queue.
        let log = Log { _ in
            isHeld.with { $0 = true }
            hold.wait()
        }
        let engine = SignatureEngine(configuration(), kernel: testedKernel, log: log)
        let signed = try Signed(8, keys: 1, seed: runSeed)
        let expected = try outcomes(of: signed.checks, by: SignatureVerifier())
        let place = try #require(expected.firstIndex(of: .valid), "seed \(runSeed)")
        let check = signed.checks[place]
        check.point.withUnsafeBytes { point in
            let borrowed = SignatureCheck(point: point, scalars: check.scalars, digest: check.digest)
            engine.crossCheck(borrowed, .invalid)
            #expect(becomesTrue { isHeld.value })
            for _ in 1..<Limits.crossChecksQueuedMax { engine.crossCheck(borrowed, .valid) }
            #expect(engine.statistics.skippedChecks == 0)
            engine.crossCheck(borrowed, .valid)
        }
        #expect(engine.statistics.skippedChecks == 1)
        hold.signal()
        engine.finishCrossChecks()
        #expect(engine.statistics.crossChecks == UInt64(Limits.crossChecksQueuedMax))
        #expect(engine.statistics.disagreements == 1)
    }

    @Test("The first batch is checked as a whole, later ones by one in so many")
    func sampling() throws {
        let engine = SignatureEngine(configuration(sampleInterval: 10), kernel: CrossCheckTests.credulous, log: .none)
        let verifier = try SignatureVerifier(engine)
        var generator = SeededGenerator(seed: runSeed)
        let key = try PrivateKey(seed: generator.bytes(48))
        let checks = try (0..<25).map { number in
            let digest = SHA256.hash([UInt8(number)])
            return OwnedCheck(point: key.uncompressedPoint, scalars: try key.sign(digest), digest: digest)
        }
        _ = try outcomes(of: checks, by: verifier)
        engine.finishCrossChecks()
        #expect(engine.statistics.crossChecks == 25)
        for _ in 0..<8 { _ = try outcomes(of: checks, by: verifier) }
        engine.finishCrossChecks()
        #expect(engine.statistics.crossChecks == 25 + 200 / 10)
        #expect(engine.statistics.disagreements == 0)
    }
}
