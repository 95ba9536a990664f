import Core
import Hashing
import Signatures
import TestSupport
import Testing

struct SignatureEncodingTests {
    /// 30 06 02 01 07 02 01 09: small integers make every byte's place plain.
    private let small: [UInt8] = [0x30, 6, 2, 1, 7, 2, 1, 9]

    private func der(_ integers: [UInt8]...) -> [UInt8] {
        let body = integers.flatMap { (integer: [UInt8]) -> [UInt8] in [0x02, UInt8(integer.count)] + integer }
        return [0x30, UInt8(body.count)] + body
    }

    @Test("The small signature is read")
    func accepted() {
        let read = scalars(in: small, .der)
        #expect(read.map { SignatureEncoding.raw($0) } == SignatureEncoding.raw(pair([7], [9])))
    }

    @Test("Random scalars come back from DER and from raw")
    func roundTrip() {
        var generator = SeededGenerator(seed: runSeed)
        for iteration in 0..<2000 {
            // Leading zeros and high first bits decide on the length.
            func integer() -> [UInt8] {
                let bytes = generator.bytes(Int.random(in: 0...32, using: &generator))
                return bytes.isEmpty || iteration % 3 > 0 ? bytes : [bytes[0] | 0x80] + bytes.dropFirst()
            }
            let value = pair(integer(), integer())
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            let raw = SignatureEncoding.raw(value)
            let encoded = SignatureEncoding.der(value)
            #expect(raw.count == 64, context)
            #expect((8...Limits.signatureBytesMax).contains(encoded.count), context)
            #expect(scalars(in: raw, .raw).map { SignatureEncoding.raw($0) } == raw, context)
            #expect(scalars(in: encoded, .der).map { SignatureEncoding.raw($0) } == raw, context)
        }
    }

    @Test("DER of the extremes is as X.690 says")
    func extremes() {
        let most = [UInt8](repeating: 0xff, count: 32)
        #expect(SignatureEncoding.der(pair([], [])) == [0x30, 6, 2, 1, 0, 2, 1, 0])
        #expect(SignatureEncoding.der(pair([0x7f], [0x80])) == [0x30, 7, 2, 1, 0x7f, 2, 2, 0, 0x80])
        #expect(SignatureEncoding.der(pair(most, most)) == der([0] + most, [0] + most))
        #expect(SignatureEncoding.der(pair(most, most)).count == 72)
    }

    @Test("Whatever is read as DER is written as the same bytes: there is one encoding only")
    func strictness() {
        var generator = SeededGenerator(seed: runSeed &+ 1)
        var read = 0
        for iteration in 0..<20_000 {
            var bytes = SignatureEncoding.der(
                pair(
                    generator.bytes(Int.random(in: 1...32, using: &generator)),
                    generator.bytes(Int.random(in: 1...32, using: &generator))))
            for _ in 0..<Int.random(in: 0...2, using: &generator) {
                bytes[Int.random(in: 0..<min(bytes.count, 8), using: &generator)] =
                    UInt8.random(in: 0...0x30, using: &generator)
            }
            guard let value = scalars(in: bytes, .der) else { continue }
            read += 1
            #expect(SignatureEncoding.der(value) == bytes, "seed \(runSeed), iteration \(iteration)")
        }
        #expect(read > 1000, "seed \(runSeed)")
    }

    @Test("Empty bytes are refused in both formats")
    func empty() {
        #expect(scalars(in: [], .der) == nil)
        #expect(scalars(in: [], .raw) == nil)
        #expect(scalars(in: [0x30, 0], .der) == nil)
    }

    @Test("DER truncated at any length is refused, with and without a length that fits")
    func truncated() {
        let most = [UInt8](repeating: 0x7f, count: 32)
        for whole in [small, der(most, most), der([0] + P256.order, [0] + P256.order)] {
            #expect(scalars(in: whole, .der) != nil)
            for length in 0..<whole.count {
                var cut = Array(whole.prefix(length))
                #expect(scalars(in: cut, .der) == nil, "\(length) of \(whole.count) bytes")
                if length >= 2 { cut[1] = UInt8(length - 2) }
                #expect(scalars(in: cut, .der) == nil, "\(length) of \(whole.count) bytes, adjusted")
            }
        }
    }

    @Test("A negative integer is refused")
    func negative() {
        #expect(scalars(in: der([0x80], [1]), .der) == nil)
        #expect(scalars(in: der([1], [0x80]), .der) == nil)
        #expect(scalars(in: der([0xff], [1]), .der) == nil)
        #expect(scalars(in: der([UInt8](repeating: 0xff, count: 32), [1]), .der) == nil)
    }

    @Test("A leading zero that is not needed is refused")
    func nonMinimalZero() {
        #expect(scalars(in: der([0, 7], [9]), .der) == nil)
        #expect(scalars(in: der([7], [0, 9]), .der) == nil)
        #expect(scalars(in: der([0, 0], [9]), .der) == nil)
        #expect(scalars(in: der([0, 0, 0x80], [9]), .der) == nil)
        #expect(scalars(in: der([0] + [UInt8](repeating: 0x7f, count: 32), [9]), .der) == nil)
        // A needed one is read.
        #expect(scalars(in: der([0, 0x80], [9]), .der) != nil)
    }

    @Test("An integer of no bytes is refused")
    func emptyInteger() {
        #expect(scalars(in: der([], [9, 9]), .der) == nil)
        #expect(scalars(in: der([7, 7], []), .der) == nil)
    }

    @Test("An integer of more than 32 bytes is refused")
    func tooLongInteger() {
        #expect(scalars(in: der([1] + [UInt8](repeating: 0, count: 32), [9]), .der) == nil)
        #expect(scalars(in: der([9], [0, 0x80] + [UInt8](repeating: 0, count: 32)), .der) == nil)
    }

    @Test("A length in BER's long form is refused")
    func longForm() {
        #expect(scalars(in: [0x30, 0x81, 6, 2, 1, 7, 2, 1, 9], .der) == nil)
        #expect(scalars(in: [0x30, 0x82, 0, 6, 2, 1, 7, 2, 1, 9], .der) == nil)
        #expect(scalars(in: [0x30, 7, 2, 0x81, 1, 7, 2, 1, 9], .der) == nil)
        #expect(scalars(in: [0x30, 7, 2, 1, 7, 2, 0x81, 1, 9], .der) == nil)
    }

    @Test("An indefinite length is refused")
    func indefinite() {
        #expect(scalars(in: [0x30, 0x80, 2, 1, 7, 2, 1, 9, 0, 0], .der) == nil)
    }

    @Test("Trailing bytes are refused, inside the sequence and behind it")
    func trailing() {
        #expect(scalars(in: small + [0], .der) == nil)
        #expect(scalars(in: [0x30, 7, 2, 1, 7, 2, 1, 9, 0], .der) == nil)
        #expect(scalars(in: [0x30, 8, 2, 1, 7, 2, 1, 9, 5, 0], .der) == nil)
        #expect(scalars(in: der([7], [9], [1]), .der) == nil)
    }

    @Test("A length that says more or less than there is is refused")
    func wrongLength() {
        for length in UInt8.min ... .max where length != 6 {
            var changed = small
            changed[1] = length
            #expect(scalars(in: changed, .der) == nil, "\(length)")
        }
    }

    @Test("Any other tag is refused")
    func wrongTags() {
        for tag in UInt8.min ... .max {
            for (place, right) in [(0, 0x30), (2, 0x02), (5, 0x02)] as [(Int, UInt8)] {
                var changed = small
                changed[place] = tag
                #expect((scalars(in: changed, .der) != nil) == (tag == right), "\(tag) at \(place)")
            }
        }
    }

    @Test("Raw signatures of every length but 64 are refused, 63 and 65 among them")
    func rawLengths() {
        for length in 0...130 {
            let bytes = [UInt8](repeating: 1, count: length)
            #expect((scalars(in: bytes, .raw) != nil) == (length == 64), "\(length) bytes")
        }
    }

    @Test("A DER signature of 64 bytes is what its format says: valid as DER, other integers as raw")
    func sixtyFourBytes() throws {
        // Made from chosen r and s; the key is the one for which they sign the message.
        let r = [UInt8](repeating: 0x5a, count: 28) + [0x5d]
        let s = [UInt8](repeating: 0x3c, count: 29)
        let key = try #require(
            [UInt8](
                hexadecimal: "04df1bb1b7c0e8429b793e95145cdf89f978b64eac8336edaed76b150231ef2e8d"
                    + "9c3dd0e9b283a413faa641a4fa8a4651ee7d399ab271e5aa0b030afd47375c4f"))
        let message = Array("sixty-four bytes of DER".utf8)
        let signature = der(r, s)
        #expect(signature.count == 64)

        let asDER = try #require(scalars(in: signature, .der))
        #expect(SignatureEncoding.raw(asDER) == SignatureEncoding.raw(pair(r, s)))
        let asRaw = try #require(scalars(in: signature, .raw))
        #expect(SignatureEncoding.raw(asRaw) == signature)

        let verifier = try SignatureVerifier(SignatureEngine(SignatureEngine.Configuration()))
        #expect(try verify(key: key, signature: signature, format: .der, message: message, by: verifier) == .valid)
        #expect(try verify(key: key, signature: signature, format: .raw, message: message, by: verifier) == .invalid)
        let raw = SignatureEncoding.raw(asDER)
        #expect(try verify(key: key, signature: raw, format: .raw, message: message, by: verifier) == .valid)
        #expect(try verify(key: key, signature: raw, format: .der, message: message, by: verifier) == nil)
    }
}
