/// A SHA-256 digest: a leaf, an inner node, or a person's root hash.
///
/// It is kept as four words in memory order, so that comparing and copying need no loop. The words are an
/// implementation detail; the 32 bytes are the value.
@frozen
public struct Digest: Hashable, Sendable {
    /// Bytes in a digest.
    public static let byteCount = 32

    @usableFromInline var words: (UInt64, UInt64, UInt64, UInt64)

    /// 32 zero bytes, which stand for "not computed". No input with this SHA-256 is known.
    @inlinable
    public static var zero: Digest { Digest(words: (0, 0, 0, 0)) }

    @inlinable
    init(words: (UInt64, UInt64, UInt64, UInt64)) {
        self.words = words
    }

    /// Copies the digest from `bytes`; `nil` unless they are exactly 32 bytes.
    @inlinable
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Digest.byteCount else { return nil }
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
        self.words = words
    }

    /// Copies 32 bytes from `address`, which need not be aligned.
    @inlinable
    public init(at address: UnsafeRawPointer) {
        words = (
            address.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
            address.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
            address.loadUnaligned(fromByteOffset: 16, as: UInt64.self),
            address.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
        )
    }

    /// Writes the 32 bytes to `address`, which need not be aligned.
    @inlinable
    public func store(to address: UnsafeMutableRawPointer) {
        address.storeBytes(of: words.0, toByteOffset: 0, as: UInt64.self)
        address.storeBytes(of: words.1, toByteOffset: 8, as: UInt64.self)
        address.storeBytes(of: words.2, toByteOffset: 16, as: UInt64.self)
        address.storeBytes(of: words.3, toByteOffset: 24, as: UInt64.self)
    }

    /// Calls `body` with the 32 bytes.
    @inlinable
    public func withUnsafeBytes<R, E>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try Swift.withUnsafeBytes(of: words, body)
    }

    /// The first eight bytes as a big-endian number, so that numeric order is byte order.
    @inlinable
    public var prefix: UInt64 { UInt64(bigEndian: words.0) }

    @inlinable
    public static func == (a: Digest, b: Digest) -> Bool {
        (a.words.0 ^ b.words.0) | (a.words.1 ^ b.words.1) | (a.words.2 ^ b.words.2) | (a.words.3 ^ b.words.3) == 0
    }

    @inlinable
    public func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}

extension Digest: Comparable {
    /// Compares the bytes in order, as `memcmp` does.
    @inlinable
    public static func < (a: Digest, b: Digest) -> Bool {
        if a.words.0 != b.words.0 { return UInt64(bigEndian: a.words.0) < UInt64(bigEndian: b.words.0) }
        if a.words.1 != b.words.1 { return UInt64(bigEndian: a.words.1) < UInt64(bigEndian: b.words.1) }
        if a.words.2 != b.words.2 { return UInt64(bigEndian: a.words.2) < UInt64(bigEndian: b.words.2) }
        return UInt64(bigEndian: a.words.3) < UInt64(bigEndian: b.words.3)
    }
}

extension Digest: CustomStringConvertible {
    /// Lower-case hexadecimal, 64 characters.
    public var description: String { bytes.hexadecimal }

    /// The 32 bytes as an array.
    public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    /// Reads 64 hexadecimal characters of either case; `nil` for anything else.
    public init?(hexadecimal text: some StringProtocol) {
        guard let bytes = [UInt8](hexadecimal: text) else { return nil }
        self.init(bytes)
    }
}
