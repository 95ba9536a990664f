import CKernels
import COpenSSL
import Core
import TestSupport
import Testing

@Suite(.serialized)
struct HashKernelTests {
    private static func hash(_ message: ArraySlice<UInt8>) -> [UInt8] {
        var context = SHA256_CTX()
        var digest = [UInt8](repeating: 0, count: 32)
        SHA256_Init(&context)
        message.withUnsafeBytes { _ = SHA256_Update(&context, $0.baseAddress, $0.count) }
        SHA256_Final(&digest, &context)
        return digest
    }

    /// What the kernel writes for messages, with a check that it writes no more.
    private func digests(_ count: Int, _ body: (UnsafeMutablePointer<UInt8>?) -> Void) -> [[UInt8]] {
        var bytes = [UInt8](repeating: 0x5a, count: 32 * count + 64)
        bytes.withUnsafeMutableBufferPointer { body($0.baseAddress) }
        #expect(bytes[(32 * count)...].allSatisfy { $0 == 0x5a }, "bytes behind the last digest were written")
        return (0..<count).map { Array(bytes[(32 * $0)..<(32 * $0 + 32)]) }
    }

    @Test("Messages of every length to 200 and of 4096 bytes, in every count to 40", arguments: NamedKernel.sha256)
    func messages(kernel: NamedKernel) throws {
        let functions = try #require(kernel.sha256)
        var generator = SeededGenerator(seed: runSeed)
        let pool = generator.bytes(4096 + 40 * 37)
        for length in Array(0...200) + [4096] {
            let expected = (0..<40).map { Self.hash(pool[(37 * $0)..<(37 * $0 + length)]) }
            for count in 0...40 {
                let given = pool.withUnsafeBufferPointer { pool in
                    let messages = (0..<count).map { index in pool.baseAddress.map { $0 + 37 * index } }
                    return digests(count) { functions.pointee.messages(messages, length, $0, count) }
                }
                #expect(given == Array(expected[..<count]), "seed \(runSeed), \(count) messages of \(length) bytes")
            }
        }
    }

    @Test("Nodes in every count to 40, at any alignment", arguments: NamedKernel.sha256)
    func nodes(kernel: NamedKernel) throws {
        let functions = try #require(kernel.sha256)
        var generator = SeededGenerator(seed: runSeed &+ 1)
        for count in 0...40 {
            let shift = count % 16
            let children = generator.bytes(64 * count + shift)
            let given = children.withUnsafeBufferPointer { children in
                digests(count) { digests in
                    functions.pointee.nodes(children.baseAddress.map { $0 + shift }, digests, count)
                }
            }
            let expected = (0..<count).map { Self.hash(children[(shift + 64 * $0)...].prefix(64)) }
            #expect(given == expected, "seed \(runSeed), \(count) nodes")
        }
    }

    @Test("FIPS 180-4's examples in every lane", arguments: NamedKernel.sha256)
    func examples(kernel: NamedKernel) throws {
        let functions = try #require(kernel.sha256)
        for (message, digest) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                    + "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
            ),
        ] {
            let bytes = Array(message.utf8)
            let given = bytes.withUnsafeBufferPointer { bytes in
                let messages = [UnsafePointer<UInt8>?](repeating: bytes.baseAddress, count: 17)
                return digests(17) { functions.pointee.messages(messages, bytes.count, $0, 17) }
            }
            #expect(given.map(\.hexadecimal) == [String](repeating: digest, count: 17), "\(message)")
        }
    }

    @Test("No byte behind a message is read, whatever its length", arguments: NamedKernel.sha256)
    func pageEnd(kernel: NamedKernel) throws {
        let functions = try #require(kernel.sha256)
        var generator = SeededGenerator(seed: runSeed &+ 2)
        let memory = try PageEnd(bytes: 4096)
        for length in 0...200 {
            let message = generator.bytes(length)
            let start = memory.place(message)
            for count in [1, 2, 16, 17] {
                let messages = [UnsafePointer<UInt8>?](repeating: start, count: count)
                let given = digests(count) { functions.pointee.messages(messages, length, $0, count) }
                #expect(given == [[UInt8]](repeating: Self.hash(message[...]), count: count), "\(length) bytes")
            }
        }
        for count in 1...33 {
            let children = generator.bytes(64 * count)
            let start = memory.place(children)
            let given = digests(count) { functions.pointee.nodes(start, $0, count) }
            #expect(given == (0..<count).map { Self.hash(children[(64 * $0)...].prefix(64)) }, "\(count) nodes")
        }
    }

    @Test("A count of zero touches nothing, not even null", arguments: NamedKernel.sha256)
    func nothing(kernel: NamedKernel) throws {
        let functions = try #require(kernel.sha256)
        functions.pointee.nodes(nil, nil, 0)
        functions.pointee.messages(nil, 64, nil, 0)
        functions.pointee.messages(nil, 0, nil, 0)
    }
}
