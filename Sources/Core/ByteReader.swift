/// Reads little-endian fields from borrowed bytes. Every read is checked
/// against the end and returns `nil` beyond it; nothing is copied.
package struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    /// Bytes read so far.
    package private(set) var offset = 0

    package init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    package var isAtEnd: Bool { offset == bytes.count }

    @inline(__always)
    package mutating func byte() -> UInt8? {
        guard offset < bytes.count else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }

    @inline(__always)
    package mutating func integer<T: FixedWidthInteger & BitwiseCopyable>() -> T? {
        let size = MemoryLayout<T>.size
        guard bytes.count - offset >= size else { return nil }
        defer { offset += size }
        return T(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// The next `count` bytes.
    @inline(__always)
    package mutating func bytes(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, bytes.count - offset >= count else { return nil }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }

    package mutating func digest() -> Digest? {
        bytes(Digest.byteCount)?.baseAddress.map { Digest(at: $0) }
    }

    /// `count` digests, copied.
    package mutating func digests(_ count: Int) -> [Digest]? {
        guard let block = bytes(count * Digest.byteCount) else { return nil }
        guard let start = block.baseAddress else { return [] }
        return (0..<count).map { Digest(at: start + $0 * Digest.byteCount) }
    }

    /// A length byte and that many bytes.
    package mutating func shortBytes() -> UnsafeRawBufferPointer? {
        byte().flatMap { bytes(Int($0)) }
    }
}

extension [UInt8] {
    package mutating func appendInteger(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    package mutating func appendDigests(_ digests: [Digest]) {
        digests.withUnsafeBytes { append(contentsOf: $0) }
    }

    /// A length byte and the bytes; at most 255.
    package mutating func appendShortBytes(_ bytes: some Collection<UInt8>) {
        append(UInt8(bytes.count))
        append(contentsOf: bytes)
    }
}

/// A number as it stands in keys: big-endian, so that its order is that of the bytes.
package func bigEndianBytes(_ number: UInt64) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
}
