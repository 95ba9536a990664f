import COpenSSL
package import Core
import Foundation

/// HMAC-SHA256 (RFC 2104) under one key.
///
/// Keeps the two SHA-256 states that the key leads to, so that a short message
/// costs two compressions; libcrypto's HMAC interfaces derive them on each call.
package struct MessageAuthenticator: Sendable {
    private let inner: SHA256_CTX
    private let outer: SHA256_CTX
    fileprivate let innerBlock: [UInt8]
    fileprivate let outerBlock: [UInt8]

    /// `key`: any length; at most 64 bytes are used as they are, a longer one is hashed first.
    package init(key: [UInt8]) {
        var block = key.count > 64 ? SHA256.hash(key).bytes : key
        block += [UInt8](repeating: 0, count: 64 - block.count)
        innerBlock = block.map { $0 ^ 0x36 }
        outerBlock = block.map { $0 ^ 0x5c }
        inner = MessageAuthenticator.state(after: innerBlock)
        outer = MessageAuthenticator.state(after: outerBlock)
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

/// The tags of many messages of one length at once, through the hashing kernels.
///
/// Works in memory of its own, so one serves one thread at a time.
package final class BatchAuthenticator {
    /// Messages in one call, at most.
    package static let capacity = 64
    private static let blockBytes = 64

    private let length: Int
    private let hashing: BatchHashing
    /// What the inner and the outer hash read: the key's block, then the message or the inner digest.
    private let inner: UnsafeMutableRawPointer
    private let outer: UnsafeMutableRawPointer
    private let innerAddresses: UnsafeMutablePointer<UnsafePointer<UInt8>?>
    private let outerAddresses: UnsafeMutablePointer<UnsafePointer<UInt8>?>
    private let digests: UnsafeMutablePointer<Digest>

    /// `length`: bytes of every message.
    package init(_ authenticator: MessageAuthenticator, length: Int, hashing: BatchHashing = .standard) {
        self.length = length
        self.hashing = hashing
        let (capacity, block) = (BatchAuthenticator.capacity, BatchAuthenticator.blockBytes)
        inner = .allocate(byteCount: capacity * (block + length), alignment: 64)
        outer = .allocate(byteCount: capacity * (block + Digest.byteCount), alignment: 64)
        innerAddresses = .allocate(capacity: capacity)
        outerAddresses = .allocate(capacity: capacity)
        digests = .allocate(capacity: capacity)
        digests.initialize(repeating: .zero, count: capacity)
        for place in 0..<capacity {
            let (innerStart, outerStart) = (
                inner + place * (block + length), outer + place * (block + Digest.byteCount)
            )
            authenticator.innerBlock.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(start: innerStart, count: block).copyMemory(from: bytes)
            }
            authenticator.outerBlock.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(start: outerStart, count: block).copyMemory(from: bytes)
            }
            innerAddresses[place] = UnsafePointer(innerStart.assumingMemoryBound(to: UInt8.self))
            outerAddresses[place] = UnsafePointer(outerStart.assumingMemoryBound(to: UInt8.self))
        }
    }

    deinit {
        // The key does not stay behind in free memory.
        memset(inner, 0, BatchAuthenticator.capacity * (BatchAuthenticator.blockBytes + length))
        memset(outer, 0, BatchAuthenticator.capacity * (BatchAuthenticator.blockBytes + Digest.byteCount))
        inner.deallocate()
        outer.deallocate()
        innerAddresses.deallocate()
        outerAddresses.deallocate()
        digests.deallocate()
    }

    /// The tags of `count` messages, at most `capacity`, each `length` bytes; valid until the next call.
    package func tags(of count: Int, message: (Int) -> UnsafeRawPointer) -> UnsafeBufferPointer<Digest> {
        precondition(count <= BatchAuthenticator.capacity)
        let block = BatchAuthenticator.blockBytes
        for place in 0..<count {
            (inner + place * (block + length) + block).copyMemory(from: message(place), byteCount: length)
        }
        hashing.hash(UnsafeBufferPointer(start: innerAddresses, count: count), length: block + length, into: digests)
        for place in 0..<count { digests[place].store(to: outer + place * (block + Digest.byteCount) + block) }
        hashing.hash(
            UnsafeBufferPointer(start: outerAddresses, count: count), length: block + Digest.byteCount, into: digests)
        return UnsafeBufferPointer(start: digests, count: count)
    }
}

/// Whether two memory areas of `count` bytes are equal, in time that depends on `count` alone.
package func equalInConstantTime(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, count: Int) -> Bool {
    CRYPTO_memcmp(a, b, count) == 0
}
