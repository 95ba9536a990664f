import COpenSSL
package import Core
package import Platform

/// HMAC-SHA256 (RFC 2104) under one key.
///
/// It keeps the two SHA-256 states that follow from the key, so that a short message costs two compressions.
/// libcrypto's HMAC interfaces derive these states on each call. The states and the key's blocks are in secret memory.
package struct MessageAuthenticator: Sendable {
    fileprivate static let blockBytes = 64

    /// The inner and the outer state, then the key's inner and outer block.
    private let memory: SecretMemory

    /// `key` has any length. Up to 64 bytes are used as they are; a longer key is hashed first.
    package init(key: UnsafeRawBufferPointer) {
        let block = MessageAuthenticator.blockBytes
        memory = SecretMemory(count: 2 * MemoryLayout<SHA256_CTX>.stride + 2 * block)
        var hashed: Digest? = key.count > block ? SHA256.hash(key) : nil
        for (index, mask) in [(0, UInt8(0x36)), (1, 0x5c)] {
            let place = UnsafeMutableRawBufferPointer(start: blocks + index * block, count: block)
            place.copyBytes(from: key.prefix(hashed == nil ? block : 0))
            hashed?.store(to: blocks + index * block)
            for byte in place.indices { place[byte] ^= mask }
            SHA256.begin(states + index)
            SHA256.update(&states[index], UnsafeRawBufferPointer(place))
        }
        withUnsafeMutableBytes(of: &hashed) { if let start = $0.baseAddress { OPENSSL_cleanse(start, $0.count) } }
    }

    package init(key: [UInt8]) {
        self = key.withUnsafeBytes { MessageAuthenticator(key: $0) }
    }

    package init(key: SecretMemory) {
        self = key.withBytes { MessageAuthenticator(key: $0) }
    }

    private var states: UnsafeMutablePointer<SHA256_CTX> {
        memory.baseAddress.assumingMemoryBound(to: SHA256_CTX.self)
    }
    private var blocks: UnsafeMutableRawPointer {
        memory.baseAddress + 2 * MemoryLayout<SHA256_CTX>.stride
    }
    private var inner: SHA256_CTX { states[0] }
    private var outer: SHA256_CTX { states[1] }
    /// The first block of the inner hash, and that of the outer hash.
    fileprivate var innerBlock: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: blocks, count: MessageAuthenticator.blockBytes)
    }
    fileprivate var outerBlock: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: blocks + MessageAuthenticator.blockBytes, count: MessageAuthenticator.blockBytes)
    }

    /// Computes the 32-byte tag of `message`.
    package func tag(of message: UnsafeRawBufferPointer) -> Digest {
        defer { withExtendedLifetime(memory) {} }
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
    private static let blockBytes = MessageAuthenticator.blockBytes

    private let length: Int
    private let hashing: BatchHashing
    /// The input of the inner and the outer hash: the key's block, then the message or the inner digest.
    private let innerMemory: SecretMemory
    private let outerMemory: SecretMemory
    private let innerAddresses: ScratchBuffer<UnsafePointer<UInt8>?>
    private let outerAddresses: ScratchBuffer<UnsafePointer<UInt8>?>
    private let digests = ScratchBuffer<Digest>(repeating: .zero, count: BatchAuthenticator.capacity)

    private var inner: UnsafeMutableRawPointer { innerMemory.baseAddress }
    private var outer: UnsafeMutableRawPointer { outerMemory.baseAddress }

    /// `length`: the number of bytes of every message.
    package init(_ authenticator: MessageAuthenticator, length: Int, hashing: BatchHashing = .standard) {
        precondition(length >= 0, "the length of the messages is negative")
        self.length = length
        self.hashing = hashing
        let (capacity, block) = (BatchAuthenticator.capacity, BatchAuthenticator.blockBytes)
        innerMemory = SecretMemory(count: capacity * (block + length))
        outerMemory = SecretMemory(count: capacity * (block + Digest.byteCount))
        innerAddresses = ScratchBuffer(repeating: nil, count: capacity)
        outerAddresses = ScratchBuffer(repeating: nil, count: capacity)
        for place in 0..<capacity {
            let (innerStart, outerStart) = (
                inner + place * (block + length), outer + place * (block + Digest.byteCount)
            )
            UnsafeMutableRawBufferPointer(start: innerStart, count: block).copyMemory(from: authenticator.innerBlock)
            UnsafeMutableRawBufferPointer(start: outerStart, count: block).copyMemory(from: authenticator.outerBlock)
            innerAddresses[place] = UnsafePointer(innerStart.assumingMemoryBound(to: UInt8.self))
            outerAddresses[place] = UnsafePointer(outerStart.assumingMemoryBound(to: UInt8.self))
        }
        withExtendedLifetime(authenticator) {}
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
