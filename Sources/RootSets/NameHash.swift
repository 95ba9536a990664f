/// SipHash-2-4 (Aumasson and Bernstein, 2012) of a collaboration's identifier. It determines the record's place among
/// the packed buckets. The key is 16 random bytes of the environment, so that nobody can choose identifiers that all
/// belong into one bucket.
struct NameHash: Sendable {
    private let key: (UInt64, UInt64)

    /// `key`: 16 bytes; any other length gives `nil`.
    init?(key: UnsafeRawBufferPointer) {
        guard key.count == 16 else { return nil }
        self.key = (
            UInt64(littleEndian: key.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
            UInt64(littleEndian: key.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }

    func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var state = State(
            v0: key.0 ^ 0x736f_6d65_7073_6575, v1: key.1 ^ 0x646f_7261_6e64_6f6d,
            v2: key.0 ^ 0x6c79_6765_6e65_7261, v3: key.1 ^ 0x7465_6462_7974_6573)
        let whole = bytes.count & ~7
        var offset = 0
        while offset < whole {
            state.absorb(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        // The last word: the remaining bytes, and the length in the highest byte.
        var last = UInt64(truncatingIfNeeded: bytes.count) << 56
        while offset < bytes.count {
            last |= UInt64(bytes[offset]) << UInt64(8 * (offset - whole))
            offset += 1
        }
        state.absorb(last)
        return state.finish()
    }

    private struct State {
        var v0: UInt64
        var v1: UInt64
        var v2: UInt64
        var v3: UInt64

        // The additions are modulo 2^64 by definition.
        @inline(__always)
        private mutating func round() {
            v0 &+= v1
            v1 = (v1 << 13 | v1 >> 51) ^ v0
            v0 = v0 << 32 | v0 >> 32
            v2 &+= v3
            v3 = (v3 << 16 | v3 >> 48) ^ v2
            v0 &+= v3
            v3 = (v3 << 21 | v3 >> 43) ^ v0
            v2 &+= v1
            v1 = (v1 << 17 | v1 >> 47) ^ v2
            v2 = v2 << 32 | v2 >> 32
        }

        @inline(__always)
        mutating func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        mutating func finish() -> UInt64 {
            v2 ^= 0xff
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }
    }
}
