import COpenSSL
package import Core

/// HMAC-SHA256 (RFC 2104) under one key.
///
/// Keeps the two SHA-256 states that the key leads to, so that a short message
/// costs two compressions; libcrypto's HMAC interfaces derive them on each call.
package struct MessageAuthenticator: Sendable {
    private let inner: SHA256_CTX
    private let outer: SHA256_CTX

    /// `key`: any length; at most 64 bytes are used as they are, a longer one is hashed first.
    package init(key: [UInt8]) {
        var block = key.count > 64 ? SHA256.hash(key).bytes : key
        block += [UInt8](repeating: 0, count: 64 - block.count)
        inner = MessageAuthenticator.state(after: block.map { $0 ^ 0x36 })
        outer = MessageAuthenticator.state(after: block.map { $0 ^ 0x5c })
    }

    private static func state(after block: [UInt8]) -> SHA256_CTX {
        var context = SHA256.initial
        block.withUnsafeBytes { bytes in _ = SHA256_Update(&context, bytes.baseAddress, bytes.count) }
        return context
    }

    /// The 32-byte tag of `message`.
    package func tag(of message: UnsafeRawBufferPointer) -> Digest {
        var context = inner
        SHA256_Update(&context, message.baseAddress, message.count)
        let innerDigest = SHA256.finish(&context)
        context = outer
        innerDigest.withUnsafeBytes { bytes in _ = SHA256_Update(&context, bytes.baseAddress, bytes.count) }
        return SHA256.finish(&context)
    }
}

/// Whether two memory areas of `count` bytes are equal, in time that depends on `count` alone.
package func equalInConstantTime(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, count: Int) -> Bool {
    CRYPTO_memcmp(a, b, count) == 0
}
