import COpenSSL
package import Core

/// HMAC-SHA256 (RFC 2104) under one key.
///
/// It keeps the two SHA-256 states that follow from the key, so that a short message costs two compressions.
/// libcrypto's HMAC interfaces derive these states on each call.
package struct MessageAuthenticator: Sendable {
    private let inner: SHA256_CTX
    private let outer: SHA256_CTX
    fileprivate let innerBlock: [UInt8]
    fileprivate let outerBlock: [UInt8]

    /// `key` has any length. Up to 64 bytes are used as they are; a longer key is hashed first.
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
        block.withUnsafeBytes { SHA256.update(&context, $0) }
        return context
    }

    /// Computes the 32-byte tag of `message`.
    package func tag(of message: UnsafeRawBufferPointer) -> Digest {
        var context = inner
        SHA256.update(&context, message)
        let innerDigest = SHA256.finish(&context)
        context = outer
        innerDigest.withUnsafeBytes { SHA256.update(&context, $0) }
        return SHA256.finish(&context)
    }
}

/// Computes the tags of many messages of one length at once, with the hashing kernels.
///
/// It has its own scratch memory, so one object serves one thread at a time.
package final class BatchAuthenticator {
    /// The most messages in one call.
    package static let capacity = 64
    private static let blockBytes = 64

    private let length: Int
    private let hashing: BatchHashing
    /// The input of the inner and the outer hash: the key's block, then the message or the inner digest.
    private let innerMemory: ScratchBuffer<UInt8>
    private let outerMemory: ScratchBuffer<UInt8>
    private let innerAddresses: ScratchBuffer<UnsafePointer<UInt8>?>
    private let outerAddresses: ScratchBuffer<UnsafePointer<UInt8>?>
    private let digests = ScratchBuffer<Digest>(repeating: .zero, count: BatchAuthenticator.capacity)

    private var inner: UnsafeMutableRawPointer { UnsafeMutableRawPointer(innerMemory.baseAddress) }
    private var outer: UnsafeMutableRawPointer { UnsafeMutableRawPointer(outerMemory.baseAddress) }

    /// `length`: the number of bytes of every message.
    package init(_ authenticator: MessageAuthenticator, length: Int, hashing: BatchHashing = .standard) {
        precondition(length >= 0, "the length of the messages is negative")
        self.length = length
        self.hashing = hashing
        let (capacity, block) = (BatchAuthenticator.capacity, BatchAuthenticator.blockBytes)
        innerMemory = ScratchBuffer(repeating: 0, count: capacity * (block + length), alignment: 64)
        outerMemory = ScratchBuffer(repeating: 0, count: capacity * (block + Digest.byteCount), alignment: 64)
        innerAddresses = ScratchBuffer(repeating: nil, count: capacity)
        outerAddresses = ScratchBuffer(repeating: nil, count: capacity)
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
        // Overwrites the key's blocks before their memory is freed. (A compiler may remove a plain `memset` here.)
        OPENSSL_cleanse(inner, innerMemory.count)
        OPENSSL_cleanse(outer, outerMemory.count)
    }

    /// Computes the tags of `count` messages, at most `capacity`, of `length` bytes each. The result is valid until the
    /// next call.
    package func tags(of count: Int, message: (Int) -> UnsafeRawPointer) -> UnsafeBufferPointer<Digest> {
        precondition(count >= 0 && count <= BatchAuthenticator.capacity, "a batch has more messages than its capacity")
        let block = BatchAuthenticator.blockBytes
        for place in 0..<count {
            (inner + place * (block + length) + block).copyMemory(from: message(place), byteCount: length)
        }
        hashing.hash(
            UnsafeBufferPointer(innerAddresses.prefix(count)), length: block + length, into: digests.baseAddress)
        for place in 0..<count { digests[place].store(to: outer + place * (block + Digest.byteCount) + block) }
        hashing.hash(
            UnsafeBufferPointer(outerAddresses.prefix(count)), length: block + Digest.byteCount,
            into: digests.baseAddress)
        return UnsafeBufferPointer(digests.prefix(count))
    }
}

/// Compares two memory areas of `count` bytes. The time depends on `count` alone.
package func equalInConstantTime(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, count: Int) -> Bool {
    CRYPTO_memcmp(a, b, count) == 0
}
