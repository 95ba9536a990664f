import CKernels
import Core

/// Tests a SHA-256 kernel before it is used. It must pass the examples of FIPS 180-4 and agree with libcrypto on last
/// blocks of every length, in batches of every size up to two steps of the kernel.
enum HashSelfTest {
    /// FIPS 180-4's examples (NIST, "SHA256.pdf"), for 0, 3 and 56 bytes.
    private static let known: [(message: String, digest: String)] = [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ]
    /// The bytes that stand in the place of the digests, and behind the last one, before the kernel runs.
    private static let untouched: UInt8 = 0xa5
    private static let guardBytes = 64

    /// Says what the kernel does wrong; `nil` when it passes. The processor must have the kernel's instructions.
    static func failure(of kernel: UnsafePointer<rg_sha256_functions>, seed: UInt64 = 1) -> String? {
        for (message, digest) in known {
            let bytes = Array(message.utf8)
            for count in [1, 17] {
                let given = digests(of: bytes, length: bytes.count, stride: 0, count: count, by: kernel)
                if given.map(\.hexadecimal) != [String](repeating: digest, count: count) {
                    return "FIPS 180-4's message of \(bytes.count) bytes, \(count) times"
                }
            }
        }
        let widest = 2 * Int(kernel.pointee.width) + 3
        let pool = RandomSource.seeded(seed).bytes(64 * 64)
        // Last blocks of every length: alone, behind one whole block, and behind two.
        for length in 0...136 {
            let count = 1 + (7 * length) % widest
            if let failure = failure(of: kernel, pool, length: length, count: count) { return failure }
        }
        for count in 0...widest {
            for length in [0, 31, 55, 64, 65] {
                if let failure = failure(of: kernel, pool, length: length, count: count) { return failure }
            }
        }
        return failure(of: kernel, pool, length: 2048, count: widest)
    }

    private static func failure(
        of kernel: UnsafePointer<rg_sha256_functions>, _ pool: [UInt8], length: Int, count: Int
    ) -> String? {
        // Messages overlap. Each begins 29 bytes behind the one before, so that every alignment occurs.
        let stride = 29
        let expected = (0..<count).map { expectedDigest(pool[(stride * $0)...].prefix(length)) }
        if digests(of: pool, length: length, stride: stride, count: count, by: kernel) != expected {
            return "\(count) messages of \(length) bytes"
        }
        guard length == 64 else { return nil }
        let nodes = (0..<count).map { expectedDigest(pool[(64 * $0)...].prefix(64)) }
        let given = written(count) { digests in
            pool.withUnsafeBufferPointer { kernel.pointee.nodes($0.baseAddress, digests, count) }
        }
        return given == nodes ? nil : "\(count) nodes"
    }

    /// Hashes `count` messages with the kernel. They begin `stride` bytes apart.
    private static func digests(
        of pool: [UInt8], length: Int, stride: Int, count: Int, by kernel: UnsafePointer<rg_sha256_functions>
    ) -> [[UInt8]] {
        pool.withUnsafeBufferPointer { pool in
            let messages = (0..<count).map { index in pool.baseAddress.map { $0 + stride * index } }
            return written(count) { kernel.pointee.messages(messages, length, $0, count) }
        }
    }

    /// Returns the `count` digests that `body` writes. If `body` also writes behind them, returns an array that equals
    /// no digests.
    private static func written(_ count: Int, _ body: (UnsafeMutablePointer<UInt8>?) -> Void) -> [[UInt8]] {
        var bytes = [UInt8](repeating: untouched, count: 32 * count + guardBytes)
        bytes.withUnsafeMutableBufferPointer { body($0.baseAddress) }
        guard bytes[(32 * count)...].allSatisfy({ $0 == untouched }) else { return [bytes] }
        return (0..<count).map { Array(bytes[(32 * $0)..<(32 * $0 + 32)]) }
    }

    /// Hashes the message with libcrypto.
    private static func expectedDigest(_ message: ArraySlice<UInt8>) -> [UInt8] {
        message.withUnsafeBytes { SHA256.hash($0).bytes }
    }
}
