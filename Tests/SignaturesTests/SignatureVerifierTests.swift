import Core
import Foundation
import Hashing
import Signatures
import TestSupport
import Testing

struct SignatureVerifierTests {
    private let key: PrivateKey
    private let verifier: SignatureVerifier
    private let digest = SHA256.hash(Array("what was signed".utf8))

    init() throws {
        key = try PrivateKey(random: .seeded(runSeed))
        verifier = try SignatureVerifier(SignatureEngine(SignatureEngine.Configuration()))
    }

    private func outcome(_ scalars: ScalarPair) throws -> SignatureOutcome {
        try outcomes(
            of: [OwnedCheck(point: key.uncompressedPoint, scalars: scalars, digest: digest)], by: verifier)[0]
    }

    private func halves(_ scalars: ScalarPair) -> (r: [UInt8], s: [UInt8]) {
        let raw = SignatureEncoding.raw(scalars)
        return (Array(raw[..<32]), Array(raw[32...]))
    }

    @Test("A signature with s and one with n - s both verify: one of them is high")
    func highS() throws {
        for iteration in 0..<10 {
            let scalars = try key.sign(digest)
            let (r, s) = halves(scalars)
            let mirrored = difference(P256.order, s)
            let half = try #require(
                [UInt8](hexadecimal: "7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8"))
            #expect(half.lexicographicallyPrecedes(s) != half.lexicographicallyPrecedes(mirrored))
            #expect(try outcome(scalars) == .valid, "seed \(runSeed), iteration \(iteration)")
            #expect(try outcome(pair(r, mirrored)) == .valid, "seed \(runSeed), iteration \(iteration)")
        }
    }

    @Test("An integer that is 0, n or more is refused")
    func outOfRange() throws {
        let (r, s) = halves(try key.sign(digest))
        let zero = [UInt8](repeating: 0, count: 32)
        let most = [UInt8](repeating: 0xff, count: 32)
        var behind = P256.order
        behind[31] += 1
        for (name, bad) in [("0", zero), ("n", P256.order), ("n + 1", behind), ("2^256 - 1", most)] {
            #expect(try outcome(pair(bad, s)) == .invalid, "r = \(name)")
            #expect(try outcome(pair(r, bad)) == .invalid, "s = \(name)")
            #expect(try outcome(pair(bad, bad)) == .invalid, "r = s = \(name)")
        }
        #expect(try outcome(pair(r, s)) == .valid)
    }

    @Test("The same r and s with n added are refused, though they are equal modulo n")
    func addedOrder() throws {
        // r + n fits 32 bytes only when r is below 2^256 - n, so r and s were chosen and the key made to fit.
        let r = [UInt8](repeating: 0, count: 3) + [UInt8](repeating: 0x5a, count: 28) + [0x5d]
        let s = [UInt8](repeating: 0, count: 3) + [UInt8](repeating: 0x3c, count: 29)
        let point = try #require(
            [UInt8](
                hexadecimal: "04df1bb1b7c0e8429b793e95145cdf89f978b64eac8336edaed76b150231ef2e8d"
                    + "9c3dd0e9b283a413faa641a4fa8a4651ee7d399ab271e5aa0b030afd47375c4f"))
        let digest = SHA256.hash(Array("sixty-four bytes of DER".utf8))
        // a + n = a - (2^256 - n) modulo 2^256.
        let complement = difference([UInt8](repeating: 0xff, count: 32), P256.order)
        func plusOrder(_ a: [UInt8]) -> [UInt8] {
            var result = difference(a, complement)
            for index in (0..<32).reversed() {
                result[index] &-= 1
                if result[index] != 0xff { break }
            }
            return result
        }
        #expect(difference(plusOrder(r), P256.order) == r)
        let checks = [pair(r, s), pair(plusOrder(r), s), pair(r, plusOrder(s))].map {
            OwnedCheck(point: point, scalars: $0, digest: digest)
        }
        #expect(try outcomes(of: checks, by: verifier) == [.valid, .invalid, .invalid])
    }

    @Test("A signature verifies neither another digest nor under another key")
    func otherDigestAndKey() throws {
        let scalars = try key.sign(digest)
        let stranger = try PrivateKey(random: .seeded(runSeed &+ 2))
        let checks = [
            OwnedCheck(point: key.uncompressedPoint, scalars: scalars, digest: SHA256.hash([1])),
            OwnedCheck(point: stranger.uncompressedPoint, scalars: scalars, digest: digest),
            OwnedCheck(point: key.uncompressedPoint, scalars: scalars, digest: digest),
        ]
        #expect(try outcomes(of: checks, by: verifier) == [.invalid, .invalid, .valid])
    }

    @Test("A change of any bit of a signature or of the digest spoils it")
    func changedBits() throws {
        let scalars = try key.sign(digest)
        let raw = SignatureEncoding.raw(scalars)
        let checks = try stride(from: 0, to: 768, by: 7).map { bit in
            var changed = raw + digest.bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            return OwnedCheck(
                point: key.uncompressedPoint, scalars: pair(Array(changed[..<32]), Array(changed[32..<64])),
                digest: try #require(Digest(changed[64...])))
        }
        let outcomes = try outcomes(of: checks, by: verifier)
        #expect(outcomes.allSatisfy { $0 == .invalid }, "seed \(runSeed)")
    }

    @Test("An outcome does not depend on its neighbours in the batch or on what the verifier saw before")
    func neighbours() throws {
        for round in 0..<5 {
            var generator = SeededGenerator(seed: runSeed &+ UInt64(round))
            var expected: [(OwnedCheck, SignatureOutcome)] = []
            for index in 0..<24 {
                let key = try PrivateKey(seed: generator.bytes(48))
                let digest = generator.digest()
                let encoded = Bool.random(using: &generator) ? key.uncompressedPoint : key.compressedPoint
                var check = OwnedCheck(point: encoded, scalars: try key.sign(digest), digest: digest)
                switch index % 4 {
                case 0:
                    check.digest = generator.digest()
                    expected.append((check, .invalid))
                case 1:
                    check.point = [4] + generator.bytes(64)
                    expected.append((check, .badKey))
                case 2:
                    check.scalars = pair([], [])
                    expected.append((check, .invalid))
                default: expected.append((check, .valid))
                }
            }
            for _ in 0..<3 {
                expected.shuffle(using: &generator)
                let found = try outcomes(of: expected.map(\.0), by: verifier)
                #expect(found == expected.map(\.1), "seed \(runSeed), round \(round)")
            }
        }
    }

    @Test("An empty batch has no outcomes, and outcomes behind the batch stay as they were")
    func bounds() throws {
        #expect(try outcomes(of: [], by: verifier).isEmpty)
        var written = [SignatureOutcome](repeating: .badKey, count: 2)
        let scalars = try key.sign(digest)
        try key.uncompressedPoint.withUnsafeBytes { point in
            let check = SignatureCheck(point: point, scalars: scalars, digest: digest)
            try [check].withUnsafeBufferPointer { checks in
                try written.withUnsafeMutableBufferPointer { try verifier.verify(checks, into: $0) }
            }
        }
        #expect(written == [.valid, .badKey])
    }

    @Test("The same seed gives the same key, another one another key")
    func seededKeys() throws {
        let a = try PrivateKey(seed: [UInt8](repeating: 1, count: 48))
        let b = try PrivateKey(seed: [UInt8](repeating: 1, count: 48))
        let c = try PrivateKey(seed: [UInt8](repeating: 2, count: 48))
        #expect(a.uncompressedPoint == b.uncompressedPoint)
        #expect(a.uncompressedPoint != c.uncompressedPoint)
        // The seed 0 is the scalar 1, whose point is the generator; SEC 2, 2.4.2.
        let one = try PrivateKey(seed: [0])
        #expect(
            one.compressedPoint.hexadecimal == "036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296")
    }
}

/// The `openssl` program on the path; `nil` when there is none.
private let opensslProgram: String? = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .map { $0 + "/openssl" }.first { FileManager.default.isExecutableFile(atPath: $0) }

struct OpenSSLProgramTests {
    /// Whether `openssl dgst -verify` accepts.
    private func accepts(
        _ openssl: String, key: [UInt8], signature: [UInt8], message: [UInt8], in directory: String
    ) throws -> Bool {
        let info = PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: key)
        let pem =
            "-----BEGIN PUBLIC KEY-----\n" + Data(info).base64EncodedString(options: .lineLength64Characters)
            + "\n-----END PUBLIC KEY-----\n"
        try Data(pem.utf8).write(to: URL(fileURLWithPath: directory + "/key.pem"))
        try Data(signature).write(to: URL(fileURLWithPath: directory + "/signature"))
        try Data(message).write(to: URL(fileURLWithPath: directory + "/message"))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: openssl)
        process.arguments = [
            "dgst", "-sha256", "-verify", directory + "/key.pem", "-signature", directory + "/signature",
            directory + "/message",
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    // Skipped where there is no `openssl` program on the PATH.
    @Test(
        "The openssl program says the same of 20 signatures, half of them spoiled",
        .enabled(if: opensslProgram != nil, "there is no openssl program on the PATH"))
    func agreement() throws {
        let openssl = try #require(opensslProgram)
        let directory = ScratchDirectory()
        let verifier = try SignatureVerifier(SignatureEngine(SignatureEngine.Configuration()))
        var generator = SeededGenerator(seed: runSeed &+ 3)
        var accepted = 0
        for iteration in 0..<20 {
            let key = try PrivateKey(seed: generator.bytes(48))
            var message = generator.bytes(Int.random(in: 0...200, using: &generator))
            var scalars = try key.sign(SHA256.hash(message))
            switch iteration % 4 {
            case 1: scalars.s[Int.random(in: 0..<32, using: &generator)] ^= 1
            case 3: message.append(0)
            default: break
            }
            let signature = SignatureEncoding.der(scalars)
            let theirs = try accepts(
                openssl, key: key.uncompressedPoint, signature: signature, message: message, in: directory.path)
            let ours = try verify(
                key: key.compressedPoint, signature: signature, message: message, by: verifier)
            #expect(
                (ours == .valid) == theirs, "seed \(runSeed), iteration \(iteration), \(signature.hexadecimal)")
            accepted += theirs ? 1 : 0
        }
        #expect(accepted == 10, "seed \(runSeed)")
    }
}
