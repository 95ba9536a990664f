import Core
import TestSupport
import Testing

struct DigestTests {
    @Test("The order of digests is the order of their bytes")
    func order() {
        var generator = SeededGenerator(seed: runSeed)
        for iteration in 0..<2000 {
            let a = generator.digest()
            // The same up to some place and random from there, so that every word decides sometimes, and
            // by its first differing byte.
            let place = iteration % 33
            guard let b = Digest(a.bytes[..<place] + generator.bytes(32 - place)) else {
                Issue.record("32 bytes are a digest")
                return
            }
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            #expect((a < b) == a.bytes.lexicographicallyPrecedes(b.bytes), context)
            #expect((b < a) == b.bytes.lexicographicallyPrecedes(a.bytes), context)
            #expect((a == b) == (a.bytes == b.bytes), context)
            if a == b { #expect(a.hashValue == b.hashValue, context) }
        }
    }

    @Test("The prefix is the first eight bytes as a big-endian number")
    func prefix() throws {
        let digest = try #require(Digest([1, 2, 3, 4, 5, 6, 7, 8] + [UInt8](repeating: 255, count: 24)))
        #expect(digest.prefix == 0x0102_0304_0506_0708)
    }

    @Test("Bytes and hexadecimal of a digest lead back to it")
    func roundTrips() {
        var generator = SeededGenerator(seed: runSeed &+ 1)
        for iteration in 0..<200 {
            let bytes = generator.bytes(32)
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            let digest = Digest(bytes)
            #expect(digest?.bytes == bytes, context)
            #expect(digest.flatMap { Digest(hexadecimal: $0.description) } == digest, context)
            #expect(digest.flatMap { Digest(hexadecimal: $0.description.uppercased()) } == digest, context)
        }
    }

    @Test("A digest reads and stores itself at any alignment")
    func unaligned() {
        var generator = SeededGenerator(seed: runSeed &+ 2)
        let bytes = generator.bytes(48)
        for offset in 0..<16 {
            var target = [UInt8](repeating: 0, count: 48)
            let digest = bytes.withUnsafeBytes { source in
                source.baseAddress.map { Digest(at: $0 + offset) }
            }
            #expect(digest?.bytes == Array(bytes[offset..<offset + 32]))
            target.withUnsafeMutableBytes { buffer in
                if let address = buffer.baseAddress { digest?.store(to: address + offset) }
            }
            var expected = [UInt8](repeating: 0, count: 48)
            expected.replaceSubrange(offset..<offset + 32, with: bytes[offset..<offset + 32])
            #expect(target == expected, "offset \(offset)")
        }
    }

    @Test("Hexadecimal is lower-case, two characters a byte, in order")
    func description() throws {
        let digest = try #require(Digest((0..<32).map { UInt8($0 * 8 + 1) }))
        #expect(digest.description == "0109111921293139414951596169717981899199a1a9b1b9c1c9d1d9e1e9f1f9")
    }

    @Test("A digest of any other length than 32 is refused")
    func wrongLengths() {
        for length in 0...64 where length != 32 {
            #expect(Digest([UInt8](repeating: 1, count: length)) == nil, "\(length) bytes")
            #expect(Digest(hexadecimal: String(repeating: "01", count: length)) == nil, "\(length) bytes")
        }
    }

    @Test("Hexadecimal of an odd length is refused")
    func oddHexadecimal() {
        #expect(Digest(hexadecimal: String(repeating: "a", count: 63)) == nil)
        #expect([UInt8](hexadecimal: "abc") == nil)
    }

    @Test("A character that is no hexadecimal digit is refused")
    func noHexadecimal() {
        for character in ["g", "G", "/", ":", "@", "`", " ", "-", "é"] {
            #expect([UInt8](hexadecimal: "0" + character) == nil, "\(character)")
            #expect([UInt8](hexadecimal: character + "0") == nil, "\(character)")
        }
    }

    @Test("The zero digest is 32 zero bytes")
    func zero() {
        #expect(Digest.zero.bytes == [UInt8](repeating: 0, count: 32))
    }
}

struct IdentifierTests {
    @Test("Identifiers of 1 and of 128 bytes are valid")
    func lengths() {
        #expect(CollaborationIdentifier("a")?.utf8 == [0x61])
        #expect(CollaborationIdentifier(String(repeating: "b", count: 128))?.utf8.count == 128)
        #expect(CollaborationIdentifier(String(repeating: "é", count: 64))?.utf8.count == 128)
    }

    @Test("The empty identifier is refused")
    func empty() {
        #expect(CollaborationIdentifier("") == nil)
        #expect(!CollaborationIdentifier.isValid([UInt8]()))
    }

    @Test("An identifier of 129 bytes is refused, even with fewer characters")
    func tooLong() {
        #expect(CollaborationIdentifier(String(repeating: "b", count: 129)) == nil)
        #expect(CollaborationIdentifier("a" + String(repeating: "é", count: 64)) == nil)
        #expect(!CollaborationIdentifier.isValid([UInt8](repeating: 0x62, count: 129)))
    }

    @Test("Exactly the control characters below U+0020 and U+007F are refused anywhere in an identifier")
    func controlCharacters() {
        for byte in UInt8(0)...0x7f {
            let isControl = byte < 0x20 || byte == 0x7f
            for bytes in [[byte], [0x61, byte], [byte, 0x61], [0x61, byte, 0x61]] {
                #expect((CollaborationIdentifier(utf8: bytes) == nil) == isControl, "\(bytes)")
                #expect(CollaborationIdentifier.isValid(bytes) == !isControl, "\(bytes)")
            }
        }
    }

    @Test("Bytes that are not UTF-8 are refused")
    func notUTF8() {
        let broken: [(String, [UInt8])] = [
            ("a continuation byte alone", [0x80]),
            ("a lead byte at the end", [0x61, 0xc3]),
            ("an overlong slash", [0xc0, 0xaf]),
            ("a surrogate", [0xed, 0xa0, 0x80]),
            ("a code point beyond U+10FFFF", [0xf4, 0x90, 0x80, 0x80]),
            ("a byte that never occurs", [0xff]),
        ]
        for (what, bytes) in broken { #expect(CollaborationIdentifier(utf8: bytes) == nil, "\(what)") }
    }

    @Test("Identifiers are compared byte by byte, not as characters")
    func comparison() throws {
        let composed = try #require(CollaborationIdentifier("\u{e9}"))
        let decomposed = try #require(CollaborationIdentifier("e\u{301}"))
        #expect(composed != decomposed)
        #expect(decomposed < composed)
        let short = try #require(CollaborationIdentifier("deck"))
        let long = try #require(CollaborationIdentifier("decks"))
        #expect(short < long)
        #expect(!(long < short))
        #expect(long.description == "decks")
    }

    @Test("A mutation identifier is written with its low byte first")
    func mutationIdentifier() {
        let identifier = MutationIdentifier(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100)
        #expect(identifier.description == "000102030405060708090a0b0c0d0e0f")
        #expect(MutationIdentifier.random() != MutationIdentifier.random())
    }

    @Test("A source of random bytes gives the same mutation identifiers again, with its first byte as the low one")
    func mutationIdentifierFromSource() {
        let (source, again) = (RandomSource.seeded(runSeed), RandomSource.seeded(runSeed))
        let first = MutationIdentifier.random(from: source)
        #expect(first.description == again.bytes(16).hexadecimal)
        let second = MutationIdentifier.random(from: source)
        #expect(second != first && second.description == again.bytes(16).hexadecimal)
    }
}

struct QueueTests {
    @Test("A queue does what an array does")
    func model() {
        for round in 0..<6 {
            var generator = SeededGenerator(seed: runSeed &+ UInt64(round))
            var queue = Queue<Int>()
            var model: [Int] = []
            for step in 0..<3000 {
                // Rounds lean to filling or to draining, so that both ends of the storage are visited.
                let fills = Int.random(in: 0..<10, using: &generator) < (step / 500 % 2 == 0 ? 7 : 3)
                let context: Comment = "seed \(runSeed), round \(round), step \(step)"
                if fills {
                    queue.append(step)
                    model.append(step)
                } else if Bool.random(using: &generator) {
                    #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()), context)
                } else if !model.isEmpty {
                    queue.removeFirst()
                    model.removeFirst()
                }
                guard queue.count == model.count, queue.isEmpty == model.isEmpty, queue.first == model.first else {
                    Issue.record("the queue is not the array: \(context)")
                    return
                }
            }
        }
    }

    @Test("An empty queue has no first element to pop")
    func empty() {
        var queue = Queue<String>()
        #expect(queue.popFirst() == nil)
        #expect(queue.first == nil)
        #expect(queue.isEmpty)
        #expect(queue.count == 0)
    }

    @Test("A queue releases the elements that it dropped")
    func release() {
        final class Token {}
        var queue = Queue<Token>()
        weak var dropped: Token?
        do {
            let token = Token()
            dropped = token
            queue.append(token)
            queue.append(Token())
        }
        #expect(dropped != nil)
        queue.removeFirst()
        #expect(dropped == nil)
        #expect(queue.count == 1)
    }
}

struct RandomSourceTests {
    @Test("A seeded source gives the same bytes, in whatever portions they are read")
    func repeatable() {
        let whole = RandomSource.seeded(runSeed).bytes(100)
        let source = RandomSource.seeded(runSeed)
        #expect(source.bytes(1) + source.bytes(0) + source.bytes(31) + source.bytes(68) == whole, "seed \(runSeed)")
        #expect(RandomSource.seeded(runSeed &+ 2).bytes(100) != whole, "seed \(runSeed)")
    }

    @Test("Random bytes fill the buffer to its end and no further")
    func bounds() {
        for source in [RandomSource.system, RandomSource.seeded(runSeed)] {
            for count in 0...40 {
                #expect(source.bytes(count).count == count)
                // Over many fills every byte of the buffer is other than zero at least once.
                var seen = [UInt8](repeating: 0, count: count)
                var buffer = [UInt8](repeating: 0, count: count + 8)
                for _ in 0..<8 {
                    buffer.withUnsafeMutableBytes { source.fill(UnsafeMutableRawBufferPointer(rebasing: $0[..<count])) }
                    for index in 0..<count { seen[index] |= buffer[index] }
                }
                #expect(!seen.contains(0), "\(count) bytes, seed \(runSeed)")
                #expect(buffer[count...].allSatisfy { $0 == 0 }, "\(count) bytes, seed \(runSeed)")
            }
        }
    }

    @Test("A clock gives what its source gives, and the system's does not go back")
    func clock() {
        #expect(MonotonicClock { 41 }.milliseconds == 41)
        var last = MonotonicClock.system.milliseconds
        for _ in 0..<1000 {
            let now = MonotonicClock.system.milliseconds
            #expect(now >= last)
            last = now
        }
    }
}
