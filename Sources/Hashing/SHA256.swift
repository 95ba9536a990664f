import COpenSSL
package import Core

/// SHA-256 (FIPS 180-4) through libcrypto's compression function.
///
/// The low-level interface neither allocates memory nor looks up an algorithm. So hashing a 64-byte node takes about
/// half the time of the one-shot call. It also cannot fail: SHA256_Init, SHA256_Update and SHA256_Final only compute
/// and always return 1. Debug builds assert this.
package enum SHA256 {
    /// Hashes `bytes`, of any length.
    package static func hash(_ bytes: UnsafeRawBufferPointer) -> Digest {
        var context = initial
        update(&context, bytes)
        return finish(&context)
    }

    /// Hashes `bytes`, of any length.
    package static func hash(_ bytes: [UInt8]) -> Digest {
        bytes.withUnsafeBytes { hash($0) }
    }

    /// Computes the inner node above two siblings: the hash of the 64 bytes at `children`, left then right.
    package static func node(at children: UnsafeRawPointer) -> Digest {
        var context = initial
        SHA256_Transform(&context, children.assumingMemoryBound(to: UInt8.self))
        withUnsafeBytes(of: paddingOf64Bytes) { padding in
            // The tuple has 64 bytes, so the base address is not `nil`.
            guard let address = padding.baseAddress else { return }
            SHA256_Transform(&context, address.assumingMemoryBound(to: UInt8.self))
        }
        return digest(of: context)
    }

    /// Computes the inner node above `left` and `right`.
    package static func node(_ left: Digest, _ right: Digest) -> Digest {
        withUnsafeBytes(of: (left, right)) { children in
            guard let address = children.baseAddress else { return .zero }
            return node(at: address)
        }
    }

    /// FIPS 180-4, 5.3.3: the state before the first block.
    static let initial: SHA256_CTX = {
        var context = SHA256_CTX()
        let isDone = SHA256_Init(&context)
        assert(isDone == 1, "SHA256_Init failed")
        return context
    }()

    /// Writes the state before the first block to memory that holds none yet.
    static func begin(_ context: UnsafeMutablePointer<SHA256_CTX>) {
        context.initialize(to: initial)
    }

    /// Hashes `bytes` after everything that `context` has hashed before.
    static func update(_ context: inout SHA256_CTX, _ bytes: UnsafeRawBufferPointer) {
        let isDone = SHA256_Update(&context, bytes.baseAddress, bytes.count)
        assert(isDone == 1, "SHA256_Update failed")
    }

    /// The second block of every 64-byte message: 0x80, zeros, and 512 as the length in bits, big-endian.
    private static let paddingOf64Bytes: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) =
        (UInt64(0x80).littleEndian, 0, 0, 0, 0, 0, 0, UInt64(512).bigEndian)

    /// Returns the digest of everything that `context` has hashed. `context` must not be used again.
    static func finish(_ context: inout SHA256_CTX) -> Digest {
        withUnsafeTemporaryAllocation(byteCount: Digest.byteCount, alignment: 8) { output in
            guard let address = output.baseAddress else { return .zero }
            let isDone = SHA256_Final(address.assumingMemoryBound(to: UInt8.self), &context)
            assert(isDone == 1, "SHA256_Final failed")
            return Digest(at: address)
        }
    }

    private static func digest(of context: SHA256_CTX) -> Digest {
        let h = context.h
        let words = (
            h.0.bigEndian, h.1.bigEndian, h.2.bigEndian, h.3.bigEndian,
            h.4.bigEndian, h.5.bigEndian, h.6.bigEndian, h.7.bigEndian
        )
        return withUnsafeBytes(of: words) { bytes in
            guard let address = bytes.baseAddress else { return .zero }
            return Digest(at: address)
        }
    }

    /// The hash of bytes that come in pieces.
    package struct Stream {
        private var context = SHA256.initial

        package init() {}

        package mutating func update(_ bytes: UnsafeRawBufferPointer) { SHA256.update(&context, bytes) }

        /// Returns the digest of all pieces. The stream must not be used again.
        package mutating func finish() -> Digest { SHA256.finish(&context) }
    }
}
