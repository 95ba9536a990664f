import Core
import Hashing
import Signatures
import TestSupport
import Testing

struct PublicKeyEncodingTests {
    private let key: PrivateKey
    private let verifier: SignatureVerifier
    private let message = Array("what was signed".utf8)
    private let signature: [UInt8]

    init() throws {
        key = try PrivateKey(random: .seeded(runSeed))
        verifier = try SignatureVerifier(SignatureEngine(SignatureEngine.Configuration()))
        signature = SignatureEncoding.der(try key.sign(SHA256.hash(message)))
    }

    private func outcome(_ key: [UInt8]) throws -> SignatureOutcome? {
        try verify(key: key, signature: signature, message: message, by: verifier)
    }

    private var compressedInfo: [UInt8] { PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: key.compressedPoint) }
    private var uncompressedInfo: [UInt8] { PublicKeyEncoding.subjectPublicKeyInfo(ofPoint: key.uncompressedPoint) }

    @Test("All four encodings of a key verify its signature")
    func accepted() throws {
        for encoded in [key.uncompressedPoint, key.compressedPoint, uncompressedInfo, compressedInfo] {
            #expect(try outcome(encoded) == .valid, "\(encoded.count) bytes, seed \(runSeed)")
        }
        #expect(uncompressedInfo.count == Limits.publicKeyBytesMax)
        #expect(compressedInfo.count == 59)
    }

    @Test("SubjectPublicKeyInfo is the DER of RFC 5480")
    func subjectPublicKeyInfo() {
        #expect(
            uncompressedInfo.hexadecimal
                == "3059301306072a8648ce3d020106082a8648ce3d030107034200" + key.uncompressedPoint.hexadecimal)
        #expect(
            compressedInfo.hexadecimal
                == "3039301306072a8648ce3d020106082a8648ce3d030107032200" + key.compressedPoint.hexadecimal)
    }

    @Test("Both signs of compressed points occur and verify")
    func compressedSigns() throws {
        var seen: Set<UInt8> = []
        for iteration in 0..<24 {
            let key = try PrivateKey(seed: [1, UInt8(iteration)])
            seen.insert(key.compressedPoint[0])
            let signature = SignatureEncoding.der(try key.sign(SHA256.hash(message)))
            let outcome = try verify(key: key.compressedPoint, signature: signature, message: message, by: verifier)
            #expect(outcome == .valid, "iteration \(iteration)")
        }
        #expect(seen == [2, 3])
    }

    @Test("The other sign of a compressed point is another key")
    func otherSign() throws {
        var other = key.compressedPoint
        other[0] ^= 1
        #expect(try outcome(other) == .invalid)
    }

    @Test("A hybrid point (06, 07) is refused, bare and in SubjectPublicKeyInfo")
    func hybrid() {
        for lead: UInt8 in [6, 7] {
            var point = self.key.uncompressedPoint
            point[0] = lead
            #expect(SignaturesTests.point(in: point) == nil, "0\(lead)")
            #expect(
                SignaturesTests.point(in: Array(uncompressedInfo.prefix(26)) + point) == nil, "0\(lead) in an info")
        }
    }

    @Test("Infinity (00) is refused, alone, padded and in SubjectPublicKeyInfo")
    func infinity() {
        #expect(point(in: [0]) == nil)
        #expect(point(in: [UInt8](repeating: 0, count: 33)) == nil)
        #expect(point(in: [UInt8](repeating: 0, count: 65)) == nil)
        let info = "3019301306072a8648ce3d020106082a8648ce3d0301070302" + "0000"
        #expect(point(in: [UInt8](hexadecimal: info) ?? []) == nil)
    }

    @Test("Any other leading byte is refused at every accepted length")
    func leadingBytes() {
        for lead in UInt8.min ... .max {
            let long = [lead] + key.uncompressedPoint.dropFirst()
            let short = [lead] + key.compressedPoint.dropFirst()
            #expect((point(in: long) != nil) == (lead == 4), "\(lead)")
            #expect((point(in: short) != nil) == (lead == 2 || lead == 3), "\(lead)")
        }
    }

    @Test("A point off the curve is a bad key")
    func offCurve() throws {
        for encoded in [key.uncompressedPoint, uncompressedInfo] {
            var changed = encoded
            changed[changed.count - 1] ^= 1
            #expect(try outcome(changed) == .badKey, "\(encoded.count) bytes")
        }
        #expect(try outcome([4] + [UInt8](repeating: 0, count: 64)) == .badKey)
    }

    @Test("A compressed x with no point on the curve is a bad key")
    func noPoint() throws {
        // x = 1 would need the square root of a non-square.
        let x = [UInt8](repeating: 0, count: 31) + [1]
        #expect(try outcome([2] + x) == .badKey)
        #expect(try outcome([3] + x) == .badKey)
    }

    @Test("A coordinate that is not below p is a bad key, though it is on the curve modulo p")
    func coordinateBeyondField() throws {
        let zero = [UInt8](repeating: 0, count: 32)
        let y = try #require(
            [UInt8](hexadecimal: "66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4"))
        // x = 0 is on the curve: the key is good, and only the signature is by another key.
        #expect(try outcome([4] + zero + y) == .invalid)
        #expect(try outcome([2] + zero) == .invalid)
        #expect(try outcome([4] + P256.prime + y) == .badKey)
        #expect(try outcome([2] + P256.prime) == .badKey)
        #expect(try outcome([3] + P256.prime) == .badKey)
        #expect(try outcome([2] + [UInt8](repeating: 0xff, count: 32)) == .badKey)
    }

    @Test("A trailing byte behind any encoding is refused")
    func trailingByte() {
        for encoded in [key.uncompressedPoint, key.compressedPoint, uncompressedInfo, compressedInfo] {
            #expect(point(in: encoded) != nil)
            #expect(point(in: encoded + [0]) == nil, "\(encoded.count) bytes")
        }
    }

    @Test("Every length but 33, 59, 65 and 91 is refused")
    func wrongLengths() {
        for encoded in [key.uncompressedPoint, key.compressedPoint, uncompressedInfo, compressedInfo] {
            for length in 0..<encoded.count {
                #expect(point(in: Array(encoded.prefix(length))) == nil, "\(length) of \(encoded.count) bytes")
            }
        }
        for length in 0...300 where ![33, 59, 65, 91].contains(length) {
            for lead: UInt8 in [2, 3, 4, 0x30] {
                #expect(point(in: [UInt8](repeating: lead, count: length)) == nil, "\(length) bytes of \(lead)")
            }
        }
    }

    @Test("A length in BER's long form is refused")
    func longForm() {
        let outer: [UInt8] = [0x30, 0x81, 0x59] + uncompressedInfo[2...]
        let inner: [UInt8] = [0x30, 0x5a, 0x30, 0x81, 0x13] + uncompressedInfo[4...]
        let bits: [UInt8] = [0x30, 0x5a] + uncompressedInfo[2..<23] + [0x03, 0x81, 0x42] + uncompressedInfo[25...]
        for (name, encoded) in [("outer", outer), ("algorithm", inner), ("bit string", bits)] {
            #expect(point(in: encoded) == nil, "\(name)")
        }
    }

    @Test("Explicit curve parameters are refused")
    func explicitParameters() throws {
        let head = "3082014b3082010306072a8648ce3d02013081f7020101302c06072a8648ce3d0101022100"
        let curve =
            "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff305b0420"
            + "ffffffff00000001000000000000000000000000fffffffffffffffffffffffc0420"
            + "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b031500"
            + "c49d360886e704936a6678e1139d26b7819f7e900441046b17d1f2e12c4247f8bce6e563a440f2"
            + "77037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315e"
            + "cecbb6406837bf51f5022100ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551020101"
        let explicit = try #require([UInt8](hexadecimal: head + curve + "034200")) + key.uncompressedPoint
        #expect(explicit.count == 335)
        #expect(point(in: explicit) == nil)
    }

    @Test("Another curve's identifier is refused")
    func otherCurve() throws {
        let secp256k1 =
            try #require([UInt8](hexadecimal: "3056301006072a8648ce3d020106052b8104000a034200")) + key.uncompressedPoint
        #expect(point(in: secp256k1) == nil)
        var sameLength = uncompressedInfo
        sameLength[22] = 0x06
        #expect(point(in: sameLength) == nil)
    }

    @Test("A change of any bit of SubjectPublicKeyInfo's head is refused")
    func changedHead() {
        for encoded in [uncompressedInfo, compressedInfo] {
            for bit in 0..<26 * 8 {
                var changed = encoded
                changed[bit / 8] ^= 1 << UInt8(bit % 8)
                #expect(point(in: changed) == nil, "bit \(bit) of \(encoded.count) bytes")
            }
        }
    }

    @Test("A point of the other length inside SubjectPublicKeyInfo is refused")
    func swappedPoints() {
        #expect(point(in: Array(uncompressedInfo.prefix(26)) + key.compressedPoint) == nil)
        #expect(point(in: Array(compressedInfo.prefix(26)) + key.uncompressedPoint) == nil)
    }

    @Test("Random bytes of any accepted length never crash the verifier")
    func fuzz() throws {
        var generator = SeededGenerator(seed: runSeed &+ 9)
        for iteration in 0..<200 {
            let length = [33, 65][iteration % 2]
            let encoded = [length == 33 ? UInt8(2 + iteration / 2 % 2) : 4] + generator.bytes(length - 1)
            let outcome = try outcome(encoded)
            #expect(
                outcome == .badKey || (length == 33 && outcome == .invalid), "seed \(runSeed), iteration \(iteration)")
        }
    }
}
