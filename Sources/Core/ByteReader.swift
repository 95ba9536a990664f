/// Reads little-endian fields from borrowed bytes. Every read checks the end of the bytes and returns `nil` beyond it.
/// Nothing is copied unless a method says so.
///
/// The type is public because the compiler inlines only public functions in other modules. With a call for each field,
/// the service would read a tenth fewer proofs.
public struct ByteReader {
    @usableFromInline let bytes: UnsafeRawBufferPointer
    @usableFromInline var position: Int

    /// Bytes read so far.
    @inlinable
    public var offset: Int { position }

    @inlinable
    public init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        position = 0
    }

    @inlinable
    public var isAtEnd: Bool { position == bytes.count }

    @inlinable @inline(__always)
    public mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    @inlinable @inline(__always)
    public mutating func integer<T: FixedWidthInteger & BitwiseCopyable>() -> T? {
        let size = MemoryLayout<T>.size
        guard bytes.count - position >= size else { return nil }
        defer { position += size }
        return T(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: T.self))
    }

    /// Returns the next `count` bytes.
    @inlinable @inline(__always)
    public mutating func bytes(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, bytes.count - position >= count else { return nil }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    @inlinable
    public mutating func digest() -> Digest? {
        bytes(Digest.byteCount)?.baseAddress.map { Digest(at: $0) }
    }

    /// Returns the next `count` digests, copied.
    @inlinable
    public mutating func digests(_ count: Int) -> [Digest]? {
        guard let block = bytes(count * Digest.byteCount) else { return nil }
        guard let start = block.baseAddress else { return [] }
        return (0..<count).map { Digest(at: start + $0 * Digest.byteCount) }
    }

    /// Reads a length byte and returns that many bytes behind it.
    @inlinable
    public mutating func shortBytes() -> UnsafeRawBufferPointer? {
        byte().flatMap { bytes(Int($0)) }
    }
}

extension [UInt8] {
    // One method for each width: a generic one would look up its type's functions at each call from another module.

    package mutating func appendInteger(_ value: UInt16) { appendLittleEndian(value) }
    package mutating func appendInteger(_ value: UInt32) { appendLittleEndian(value) }
    package mutating func appendInteger(_ value: UInt64) { appendLittleEndian(value) }
    package mutating func appendInteger(_ value: UInt128) { appendLittleEndian(value) }

    @inline(__always)
    private mutating func appendLittleEndian(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    package mutating func appendDigests(_ digests: [Digest]) {
        digests.withUnsafeBytes { append(contentsOf: $0) }
    }

    /// Appends a length byte and the bytes, at most 255.
    package mutating func appendShortBytes(_ bytes: some Collection<UInt8>) {
        append(UInt8(bytes.count))
        append(contentsOf: bytes)
    }
}

/// Encodes a number for use in a key: big-endian, so that numeric order is byte order.
package func bigEndianBytes(_ number: UInt64) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
}
