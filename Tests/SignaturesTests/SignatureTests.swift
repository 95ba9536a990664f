import Core
import Foundation
import Hashing
import Signatures
import TestSupport
import Testing

@Suite struct SignatureTests {
    private let key: PrivateKey
    private let verifier: SignatureVerifier
    private let digest = SHA256.hash(Array("message".utf8))

    init() throws {
        key = try PrivateKey()
        verifier = try SignatureVerifier()
    }

    private var spki: [UInt8] { PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: key.uncompressedPoint) }

    // MARK: Keys

    @Test func everyEncodingOfTheKeyVerifies() throws {
        let der = SignatureEncoding.der(try key.sign(digest))
        let encodings = [
            key.uncompressedPoint, key.compressedPoint, spki,
            PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: key.compressedPoint),
        ]
        #expect(encodings.map(\.count) == [65, 33, 91, 59])
        for encoding in encodings { #expect(try verify(encoding, der, .der, digest, verifier) == .valid) }
    }

    @Test func everyOtherEncodingOfAKeyIsRefused() throws {
        var negatives: [String: [UInt8]] = [
            "empty": [], "infinity": [0], "infinity, padded": [0] + [UInt8](repeating: 0, count: 64),
            "hybrid, even": [6] + key.uncompressedPoint.dropFirst(), "hybrid, odd": [7] + key.uncompressedPoint.dropFirst(),
            "compressed with the wrong length": key.compressedPoint + [0],
            "uncompressed, cut": Array(key.uncompressedPoint.dropLast()), "uncompressed, trailing byte": key.uncompressedPoint + [0],
            "coordinates alone": Array(key.uncompressedPoint.dropFirst()),
            "SPKI, trailing byte": spki + [0], "SPKI, cut": Array(spki.dropLast()),
            "compressed prefix on 65 bytes": [2] + key.uncompressedPoint.dropFirst(),
            "uncompressed prefix on 33 bytes": [4] + key.compressedPoint.dropFirst(),
        ]
        // BER: the outer length in its long form.
        negatives["SPKI, BER length"] = [0x30, 0x81, 0x59] + spki.dropFirst(2)
        negatives["SPKI, indefinite length"] = [0x30, 0x80] + spki.dropFirst(2) + [0, 0]
        for position in 0..<26 {
            var changed = spki
            changed[position] ^= 1
            negatives["SPKI, header byte \(position) changed"] = changed
        }
        for (name, bytes) in negatives {
            #expect(bytes.withUnsafeBytes { PublicKeyEncoding.point(in: $0) == nil }, "\(name)")
        }
    }

    @Test func keysThatAreNoPointsAreBad() throws {
        let der = SignatureEncoding.der(try key.sign(digest))
        var offCurve = key.uncompressedPoint
        offCurve[64] ^= 1
        let fieldPrime = try #require(
            [UInt8](hexadecimal: "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"))
        var unsolvable: [UInt8]?
        for x in UInt8(0)...255 where unsolvable == nil {
            let candidate = [2] + [UInt8](repeating: 0, count: 31) + [x]
            if try verify(candidate, der, .der, digest, verifier) == .badKey { unsolvable = candidate }
        }
        let negatives: [String: [UInt8]] = [
            "off the curve": offCurve, "x = p": [4] + fieldPrime + key.uncompressedPoint[33...],
            "x = p, compressed": [2] + fieldPrime, "x beyond p": [2] + [UInt8](repeating: 0xff, count: 32),
            "zero": [4] + [UInt8](repeating: 0, count: 64), "x without a y": try #require(unsolvable),
        ]
        for (name, bytes) in negatives {
            #expect(try verify(bytes, der, .der, digest, verifier) == .badKey, "\(name)")
        }
        // The verifier is as good as new afterwards.
        #expect(try verify(key.uncompressedPoint, der, .der, digest, verifier) == .valid)
    }

    // MARK: Signatures

    private static let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"

    /// `order` - `value`, both 32 big-endian bytes.
    private func negated(_ value: [UInt8]) throws -> [UInt8] {
        let order = try #require([UInt8](hexadecimal: SignatureTests.order))
        var result = [UInt8](repeating: 0, count: 32)
        var borrow = 0
        for index in stride(from: 31, through: 0, by: -1) {
            let difference = Int(order[index]) - Int(value[index]) - borrow
            result[index] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
        return result
    }

    @Test func highAndLowSAreBothValid() throws {
        let raw = SignatureEncoding.raw(try key.sign(digest))
        let other = Array(raw[..<32]) + (try negated(Array(raw[32...])))
        #expect(other != raw)
        #expect(try verify(key.uncompressedPoint, raw, .raw, digest, verifier) == .valid)
        #expect(try verify(key.uncompressedPoint, other, .raw, digest, verifier) == .valid)
    }

    @Test func integersOutsideTheirRangeNeverVerify() throws {
        let raw = SignatureEncoding.raw(try key.sign(digest))
        let order = try #require([UInt8](hexadecimal: SignatureTests.order))
        let zero = [UInt8](repeating: 0, count: 32)
        let ones = [UInt8](repeating: 0xff, count: 32)
        for bad in [zero, order, ones] {
            #expect(try verify(key.uncompressedPoint, bad + raw[32...], .raw, digest, verifier) == .invalid)
            #expect(try verify(key.uncompressedPoint, raw[..<32] + bad, .raw, digest, verifier) == .invalid)
        }
        #expect(try verify(key.uncompressedPoint, zero + zero, .raw, digest, verifier) == .invalid)
    }

    @Test func everyOtherEncodingOfASignatureIsRefused() throws {
        func der(_ r: [UInt8], _ s: [UInt8]) -> [UInt8] {
            let body = [0x02, UInt8(r.count)] + r + [0x02, UInt8(s.count)] + s
            return [0x30, UInt8(body.count)] + body
        }
        let good = SignatureEncoding.der(try key.sign(digest))
        var negatives: [String: [UInt8]] = [
            "negative r": der([0x80], [1]), "negative s": der([1], [0xff]), "padded r": der([0, 1], [1]),
            "padded s": der([1], [0, 0x7f]), "empty r": der([], [1]), "empty s": der([1], []),
            "r of 33 bytes": der([1] + [UInt8](repeating: 0, count: 32), [1]),
            "r of 34 bytes, padded": der([0, 0x80] + [UInt8](repeating: 0, count: 32), [1]),
            "trailing byte": good + [0], "trailing byte inside": [0x30, good[1] + 1] + good.dropFirst(2) + [0],
            "long form": [0x30, 0x81, good[1]] + good.dropFirst(2),
            "indefinite": [0x30, 0x80] + good.dropFirst(2) + [0, 0], "set": [0x31] + good.dropFirst(),
            "one integer": [0x30, 3, 2, 1, 1], "three integers": [0x30, 9, 2, 1, 1, 2, 1, 1, 2, 1, 1],
            "octet string": [0x30, 6, 4, 1, 1, 2, 1, 1],
        ]
        for length in 0..<good.count { negatives["cut to \(length) bytes"] = Array(good[..<length]) }
        for (name, bytes) in negatives {
            #expect(bytes.withUnsafeBytes { SignatureEncoding.scalars(in: $0, format: .der) } == nil, "\(name)")
        }
        for length in [0, 1, 63, 65, 128] {
            let bytes = [UInt8](repeating: 1, count: length)
            #expect(bytes.withUnsafeBytes { SignatureEncoding.scalars(in: $0, format: .raw) } == nil)
        }
    }

    @Test func aDERSignatureOf64BytesIsTakenForWhatItIsSaidToBe() throws {
        var scalars = ScalarPair()
        for index in 4..<32 {
            scalars.r[index] = 1
            scalars.s[index] = 2
        }
        scalars.r[3] = 1
        scalars.s[3] = 1
        let der = SignatureEncoding.der(scalars)
        #expect(der.count == 64)
        let asDER = try #require(der.withUnsafeBytes { SignatureEncoding.scalars(in: $0, format: .der) })
        let asRaw = try #require(der.withUnsafeBytes { SignatureEncoding.scalars(in: $0, format: .raw) })
        #expect(SignatureEncoding.raw(asDER) == SignatureEncoding.raw(scalars))
        #expect(SignatureEncoding.raw(asRaw) == der)
    }

    @Test func derAndBackIsTheSameForIntegersOfEveryLength() throws {
        var generator = SeededGenerator(seed: runSeed)
        for step in 0..<2000 {
            var scalars = ScalarPair()
            let (r, s) = (Int.random(in: 0...32, using: &generator), Int.random(in: 0...32, using: &generator))
            for index in 32 - r..<32 { scalars.r[index] = UInt8.random(in: 0...255, using: &generator) }
            for index in 32 - s..<32 { scalars.s[index] = UInt8.random(in: 0...255, using: &generator) }
            let der = SignatureEncoding.der(scalars)
            let back = der.withUnsafeBytes { SignatureEncoding.scalars(in: $0, format: .der) }
            #expect(back.map { SignatureEncoding.raw($0) } == SignatureEncoding.raw(scalars), "seed \(runSeed), step \(step)")
        }
    }

    // MARK: Batches

    @Test func outcomesInABatchDoNotDependOnTheirNeighbours() throws {
        var generator = SeededGenerator(seed: runSeed)
        let raw = try key.sign(digest)
        let points = [key.uncompressedPoint, key.compressedPoint, [2] + [UInt8](repeating: 0xff, count: 32)]
        let area = points.flatMap { $0 }
        try area.withUnsafeBytes { area in
            let places = [0..<65, 65..<98, 98..<131]
            for round in 0..<20 {
                var checks: [SignatureCheck] = []
                var expected: [SignatureOutcome] = []
                for _ in 0..<Int.random(in: 1...64, using: &generator) {
                    let kind = Int.random(in: 0..<4, using: &generator)
                    let point = UnsafeRawBufferPointer(rebasing: area[places[kind == 2 ? 2 : kind & 1]])
                    checks.append(SignatureCheck(point: point, scalars: raw, digest: kind == 3 ? .zero : digest))
                    expected.append(kind == 2 ? .badKey : kind == 3 ? .invalid : .valid)
                }
                var outcomes = [SignatureOutcome](repeating: .invalid, count: checks.count)
                try checks.withUnsafeBufferPointer { checks in
                    try outcomes.withUnsafeMutableBufferPointer { try verifier.verify(checks, into: $0) }
                }
                #expect(outcomes == expected, "seed \(runSeed), round \(round)")
            }
        }
    }

    // MARK: The openssl program as the oracle

    private static let openssl = ["/usr/bin/openssl", "/opt/homebrew/bin/openssl", "/usr/local/bin/openssl"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    @Test(.enabled(if: SignatureTests.openssl != nil, "there is no openssl program here"))
    func theOpenSSLProgramAgreesOnGenuineAndSpoiltSignatures() throws {
        let openssl = try #require(SignatureTests.openssl)
        let directory = ScratchDirectory()
        func file(_ name: String, _ bytes: [UInt8]) throws -> String {
            let path = directory.path + "/" + name
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return path
        }
        var generator = SeededGenerator(seed: runSeed)
        for round in 0..<12 {
            let message = generator.bytes(Int.random(in: 0...200, using: &generator))
            var signature = SignatureEncoding.der(try key.sign(SHA256.hash(message)))
            if round % 2 == 1 { signature[Int.random(in: 0..<signature.count, using: &generator)] ^= 1 << UInt8(round % 8) }
            let result = try runProgram(
                openssl,
                [
                    "dgst", "-sha256", "-keyform", "DER", "-verify", try file("key", spki), "-signature",
                    try file("signature", signature), try file("message", message),
                ])
            let ours = try verify(spki, signature, .der, SHA256.hash(message), verifier) == .valid
            #expect(ours == (result.code == 0), "seed \(runSeed), round \(round): \(result.output)")
            #expect(ours == (round % 2 == 0), "seed \(runSeed), round \(round)")
        }
    }
}
