import Core
import Hashing
import TestSupport
import Testing

@Suite("Tags under keys that are replaced")
struct TagCheckerTests {
    private let length = 24
    private let tagBytes = 24

    private func authenticator(_ byte: UInt8) -> MessageAuthenticator {
        MessageAuthenticator(key: [UInt8](repeating: byte, count: 32))
    }

    /// A message with its tag behind it.
    private func tagged(_ message: [UInt8], _ key: MessageAuthenticator) -> [UInt8] {
        message + message.withUnsafeBytes { key.tag(of: $0) }.bytes.prefix(tagBytes)
    }

    private func check(_ messages: [[UInt8]], _ checker: TagChecker) -> [Bool] {
        let packed = messages.flatMap { $0 }
        return packed.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return [] }
            return Array(checker.check(messages.count) { start + $0 * (length + tagBytes) })
        }
    }

    private func isGenuine(_ message: [UInt8], _ keys: RotatingKeys) -> Bool {
        message.withUnsafeBytes { bytes in
            keys.isGenuine(
                UnsafeRawBufferPointer(rebasing: bytes[..<length]),
                tag: UnsafeRawBufferPointer(rebasing: bytes[length...])
            )
        }
    }

    @Test("Tags of the present key and the other one are genuine in any mixture, and those of a third are not")
    func mixtures() {
        var generator = SeededGenerator(seed: runSeed)
        let keys = (1...3).map { authenticator(UInt8($0)) }
        let rotating = RotatingKeys(KeyPair(current: keys[1], other: keys[0]))
        let checker = TagChecker(rotating, length: length, tagBytes: tagBytes)
        for count in [0, 1, 2, 15, 16, 17, 63, TagChecker.capacity] {
            let choices = (0..<count).map { _ in Int.random(in: 0..<4, using: &generator) }
            let messages = choices.map { choice -> [UInt8] in
                let message = tagged(generator.bytes(length), keys[min(choice, 2)])
                return choice < 3 ? message : generator.bytes(length + tagBytes)
            }
            #expect(check(messages, checker) == choices.map { $0 < 2 }, "seed \(runSeed), \(count) messages")
            #expect(messages.map { isGenuine($0, rotating) } == choices.map { $0 < 2 }, "seed \(runSeed)")
        }
    }

    @Test("A checker that was made before keys were replaced uses the new ones")
    func replacement() {
        let keys = (1...3).map { authenticator(UInt8($0)) }
        let messages = keys.map { tagged([UInt8](repeating: 5, count: length), $0) }
        let rotating = RotatingKeys(KeyPair(current: keys[0]))
        let checker = TagChecker(rotating, length: length, tagBytes: tagBytes)
        #expect(check(messages, checker) == [true, false, false])
        rotating.replace(KeyPair(current: keys[1], other: keys[0]))
        #expect(check(messages, checker) == [true, true, false])
        rotating.replace(KeyPair(current: keys[2], other: keys[1]))
        #expect(check(messages, checker) == [false, true, true])
        rotating.replace(KeyPair(current: keys[2]))
        #expect(check(messages, checker) == [false, false, true])
        #expect(messages.map { isGenuine($0, rotating) } == [false, false, true])
    }

    @Test("A tag with any one bit changed is not genuine under either key")
    func everyBit() {
        let keys = (1...2).map { authenticator(UInt8($0)) }
        let rotating = RotatingKeys(KeyPair(current: keys[1], other: keys[0]))
        let checker = TagChecker(rotating, length: length, tagBytes: tagBytes)
        for key in keys {
            let message = tagged([UInt8](repeating: 5, count: length), key)
            for bit in 0..<8 * message.count {
                var changed = message
                changed[bit / 8] ^= 1 << UInt8(bit % 8)
                #expect(check([changed, message], checker) == [false, true], "bit \(bit)")
                #expect(!isGenuine(changed, rotating), "bit \(bit)")
            }
        }
    }

    @Test("Made tags are those of RFC 2104 under the present key, and nothing behind them is written")
    func making() {
        var generator = SeededGenerator(seed: runSeed &+ 1)
        let keys = (1...2).map { authenticator(UInt8($0)) }
        let rotating = RotatingKeys(KeyPair(current: keys[0]))
        let maker = TagMaker(rotating, length: length, tagBytes: tagBytes)
        let stride = length + tagBytes + 3
        for (round, key) in keys.enumerated() {
            rotating.replace(KeyPair(current: key, other: keys[0]))
            for count in [0, 1, 2, 3, 15, 16, 17, 32, 33, 63, TagMaker.capacity] {
                let messages = (0..<count).map { _ in generator.bytes(length) }
                var bytes = messages.flatMap { $0 + [UInt8](repeating: 0xa5, count: tagBytes + 3) }
                bytes.withUnsafeMutableBytes { bytes in
                    guard let start = bytes.baseAddress else { return }
                    maker.tag(count) { start + $0 * stride }
                }
                let expected = messages.flatMap { message -> [UInt8] in
                    func block(_ mask: UInt8) -> [UInt8] {
                        [UInt8](repeating: UInt8(round + 1) ^ mask, count: 32) + [UInt8](repeating: mask, count: 32)
                    }
                    let inner = ReferenceSHA256.hash(block(0x36) + message)
                    return message + ReferenceSHA256.hash(block(0x5c) + inner).prefix(tagBytes) + [0xa5, 0xa5, 0xa5]
                }
                #expect(bytes == expected, "seed \(runSeed), \(count) messages")
            }
        }
    }
}
