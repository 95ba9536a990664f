import CKernels
import Core
import Hashing
import Kernels
import TestSupport
import Testing

struct ReferenceTests {
    @Test(
        "The reference agrees with the examples of FIPS 180-4",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                    + "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
            ),
        ])
    func reference(message: String, digest: String) {
        #expect(ReferenceSHA256.hash(Array(message.utf8)).hexadecimal == digest)
    }
}

struct SHA256Tests {
    @Test("Hashes of every length from 0 to 300 agree with the reference")
    func everyLength() {
        var generator = SeededGenerator(seed: runSeed)
        for length in 0...300 {
            let message = generator.bytes(length)
            #expect(SHA256.hash(message).bytes == ReferenceSHA256.hash(message), "seed \(runSeed), length \(length)")
        }
    }

    @Test("A slice of a buffer is hashed as its bytes alone")
    func slices() {
        var generator = SeededGenerator(seed: runSeed &+ 1)
        let message = generator.bytes(200)
        for (start, end) in [(0, 0), (1, 65), (7, 71), (63, 200), (200, 200)] {
            let hash = message.withUnsafeBytes { SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
            #expect(
                hash.bytes == ReferenceSHA256.hash(Array(message[start..<end])), "seed \(runSeed), \(start)..<\(end)")
        }
    }

    @Test("A node is the hash of its 64 bytes, left then right, at any alignment")
    func nodes() {
        var generator = SeededGenerator(seed: runSeed &+ 2)
        for iteration in 0..<100 {
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            let (left, right) = (generator.digest(), generator.digest())
            let expected = ReferenceSHA256.hash(left.bytes + right.bytes)
            #expect(SHA256.node(left, right).bytes == expected, context)
            #expect(SHA256.node(right, left).bytes != expected, context)
            let shifted = [UInt8](repeating: 0, count: iteration % 16) + left.bytes + right.bytes
            let node = shifted.withUnsafeBytes { bytes in
                bytes.baseAddress.map { SHA256.node(at: $0 + iteration % 16) }
            }
            #expect(node?.bytes == expected, context)
        }
    }
}

struct BatchHashingTests {
    /// Nodes and messages by this object, compared with the reference.
    private func check(_ hashing: BatchHashing, _ name: String) {
        var generator = SeededGenerator(seed: runSeed &+ 7)
        let bytes = generator.bytes(64 * 150)
        for count in Array(0...40) + [63, 64, 65, 80, 127, 128, 129, 150] {
            var digests = [Digest](repeating: .zero, count: count + 1)
            let context: Comment = "seed \(runSeed), \(count) by \(name)"
            digests.withUnsafeMutableBufferPointer { digests in
                bytes.withUnsafeBytes { bytes in
                    guard let start = bytes.baseAddress, let first = digests.baseAddress else { return }
                    hashing.nodes(at: start, count: count, into: first)
                }
            }
            let nodes = (0..<count).map { ReferenceSHA256.hash(Array(bytes[(64 * $0)..<(64 * $0 + 64)])) }
            #expect(digests.dropLast().map(\.bytes) == nodes, context)
            digests.withUnsafeMutableBufferPointer { digests in
                bytes.withUnsafeBufferPointer { bytes in
                    let messages = (0..<count).map { index in bytes.baseAddress.map { $0 + 64 * index } }
                    messages.withUnsafeBufferPointer { messages in
                        guard let first = digests.baseAddress else { return }
                        hashing.hash(messages, length: 33, into: first)
                    }
                }
            }
            let hashes = (0..<count).map { ReferenceSHA256.hash(Array(bytes[(64 * $0)..<(64 * $0 + 33)])) }
            #expect(digests.dropLast().map(\.bytes) == hashes, context)
            #expect(digests[count] == .zero, context)
        }
    }

    @Test("Every kernel alone, all kernels together, and libcrypto alone hash batches of every size")
    func kernels() {
        let kernels = Kernel.runnable(with: .permitted).filter { $0.kind == .hashing }
        for kernel in kernels {
            let alone = BatchHashing([kernel])
            #expect(alone.kernelNames == [kernel.name] && alone.failures.isEmpty)
            #expect(alone.rates.map(\.name) == [kernel.name])
            check(alone, kernel.name)
        }
        check(BatchHashing(kernels), "all")
        let libcrypto = BatchHashing([])
        #expect(libcrypto.kernelNames.isEmpty && libcrypto.rates.map(\.name) == ["openssl"])
        check(libcrypto, "libcrypto")
    }

    @Test("What is in use was measured, and every measured size of batch is somebody's")
    func rates() {
        let hashing = BatchHashing.standard
        #expect(hashing.rates.allSatisfy { $0.perSecond > 1000 && $0.work == .hashes })
        #expect(hashing.rates.flatMap(\.sizes).sorted() == BatchPlan.sizes)
    }

    @Test("A kernel that fails its self-test is not used, and others do its work")
    func failures() throws {
        let functions = UnsafeMutablePointer<rg_sha256_functions>.allocate(capacity: 1)
        functions.initialize(to: rg_sha256_functions(width: 4, nodes: { _, _, _ in }, messages: { _, _, _, _ in }))
        let hashing = BatchHashing([Kernel(name: "sha256-idle", sha256: functions)])
        #expect(hashing.failures.count == 1 && hashing.failures[0].hasPrefix("sha256-idle: "))
        #expect(hashing.kernelNames.isEmpty)
        check(hashing, "libcrypto")
    }
}

struct MessageAuthenticatorTests {
    @Test(
        "Tags agree with RFC 4231",
        arguments: [
            (
                1, [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                2, Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                3, [UInt8](repeating: 0xaa, count: 20), [UInt8](repeating: 0xdd, count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                4, Array(1...25), [UInt8](repeating: 0xcd, count: 50),
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
            ),
            (
                5, [UInt8](repeating: 0x0c, count: 20), Array("Test With Truncation".utf8),
                "a3b6167473100ee06e0c796c2955552b"
            ),
            (
                6, [UInt8](repeating: 0xaa, count: 131),
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
            (
                7, [UInt8](repeating: 0xaa, count: 131),
                Array(
                    ("This is a test using a larger than block-size key and a larger than block-size data. "
                        + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
            ),
        ] as [(Int, [UInt8], [UInt8], String)])
    func vectors(number: Int, key: [UInt8], message: [UInt8], tag: String) {
        let authenticator = MessageAuthenticator(key: key)
        let found = message.withUnsafeBytes { authenticator.tag(of: $0) }.description
        #expect(found.prefix(tag.count) == tag, "test case \(number)")
        // The key's states are read, not used up.
        #expect(message.withUnsafeBytes { authenticator.tag(of: $0) }.description == found, "test case \(number)")
    }

    @Test("Tags agree with the definition of RFC 2104 for keys and messages around the block's size")
    func definition() {
        var generator = SeededGenerator(seed: runSeed &+ 3)
        for keyLength in [0, 1, 32, 63, 64, 65, 128] {
            for messageLength in [0, 1, 48, 63, 64, 65] {
                let key = generator.bytes(keyLength)
                let message = generator.bytes(messageLength)
                var block = keyLength > 64 ? ReferenceSHA256.hash(key) : key
                while block.count < 64 { block.append(0) }
                let inner = ReferenceSHA256.hash(block.map { $0 ^ 0x36 } + message)
                let expected = ReferenceSHA256.hash(block.map { $0 ^ 0x5c } + inner)
                let tag = message.withUnsafeBytes { MessageAuthenticator(key: key).tag(of: $0) }
                #expect(
                    tag.bytes == expected, "seed \(runSeed), key of \(keyLength), message of \(messageLength) bytes")
            }
        }
    }

    @Test("Equal areas are equal, and a difference in any one bit is seen")
    func constantTimeEquality() {
        var generator = SeededGenerator(seed: runSeed &+ 4)
        let a = generator.bytes(48)
        func areEqual(_ a: [UInt8], _ b: [UInt8], _ count: Int) -> Bool? {
            a.withUnsafeBytes { a in
                b.withUnsafeBytes { b in
                    guard let a = a.baseAddress, let b = b.baseAddress else { return nil }
                    return equalInConstantTime(a, b, count: count)
                }
            }
        }
        #expect(areEqual(a, a + [1], 48) == true)
        for bit in 0..<48 * 8 {
            var b = a
            b[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(areEqual(a, b, 48) == false, "bit \(bit)")
            // Bytes behind the count are not compared.
            #expect(areEqual(a, b, bit / 8) == true, "bit \(bit)")
        }
    }
}

struct KeyDerivationTests {
    @Test("Test case 1 of RFC 5869: salt and info")
    func basic() throws {
        let key = try KeyDerivation.hkdf(
            secret: [UInt8](repeating: 0x0b, count: 22), salt: Array(0...0x0c), info: Array(0xf0...0xf9), count: 42)
        #expect(
            key.hexadecimal
                == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
    }

    @Test("Test case 2 of RFC 5869: longer inputs and output")
    func longer() throws {
        let key = try KeyDerivation.hkdf(
            secret: Array(0...0x4f), salt: Array(0x60...0xaf), info: Array(0xb0...0xff), count: 82)
        #expect(
            key.hexadecimal
                == "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
                + "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87")
    }

    @Test("Test case 3 of RFC 5869: neither salt nor info")
    func empty() throws {
        let key = try KeyDerivation.hkdf(secret: [UInt8](repeating: 0x0b, count: 22), info: [], count: 42)
        #expect(
            key.hexadecimal
                == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")
    }

    @Test("The longest output is derived, and a longer one is an internal fault")
    func length() throws {
        #expect(try KeyDerivation.hkdf(secret: [1], info: [2], count: 8160).count == 8160)
        #expect(throws: ServiceError(.internalFault, "")) {
            try KeyDerivation.hkdf(secret: [1], info: [2], count: 8161)
        }
        // A failed derivation does not affect the next one.
        #expect(try KeyDerivation.hkdf(secret: [1], info: [2], count: 32).count == 32)
    }
}
