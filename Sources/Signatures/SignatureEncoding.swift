package import Core

/// An ECDSA signature as two 32-byte big-endian integers. An integer may be zero or not below the group's order; such a
/// signature never verifies.
package struct ScalarPair: BitwiseCopyable, Sendable {
    package var r: InlineArray<32, UInt8>
    package var s: InlineArray<32, UInt8>

    package init() {
        r = .init(repeating: 0)
        s = .init(repeating: 0)
    }
}

package enum SignatureEncoding {
    /// Reads the integers of the signature in `bytes`; `nil` unless it is exactly in `format`, or when an integer is
    /// negative or longer than 32 bytes.
    package static func scalars(in bytes: UnsafeRawBufferPointer, format: SignatureFormat) -> ScalarPair? {
        var scalars = ScalarPair()
        switch format {
        case .raw:
            guard bytes.count == 64 else { return nil }
            copy(bytes[..<32], into: &scalars.r)
            copy(bytes[32...], into: &scalars.s)
        case .der:
            // ECDSA-Sig-Value ::= SEQUENCE { r INTEGER, s INTEGER }, at most 72 bytes. DER allows only the short form
            // of the length here.
            guard (8...Limits.signatureBytesMax).contains(bytes.count), bytes[0] == 0x30,
                Int(bytes[1]) == bytes.count - 2
            else { return nil }
            var offset = 2
            guard integer(in: bytes, at: &offset, into: &scalars.r),
                integer(in: bytes, at: &offset, into: &scalars.s), offset == bytes.count
            else { return nil }
        }
        return scalars
    }

    /// Reads one DER INTEGER of 0 to 2^256 - 1 and moves `offset` behind it (X.690, 8.3 and 10.1).
    private static func integer(
        in bytes: UnsafeRawBufferPointer, at offset: inout Int, into value: inout InlineArray<32, UInt8>
    ) -> Bool {
        guard offset + 2 <= bytes.count, bytes[offset] == 0x02 else { return false }
        var length = Int(bytes[offset + 1])
        var start = offset + 2
        guard (1...33).contains(length), start + length <= bytes.count, bytes[start] < 0x80 else { return false }
        offset = start + length
        if bytes[start] == 0, length > 1 {
            // DER allows a leading zero only when the next byte would otherwise read as a sign.
            guard bytes[start + 1] >= 0x80 else { return false }
            start += 1
            length -= 1
        }
        guard length <= 32 else { return false }
        copy(bytes[start..<start + length], into: &value)
        return true
    }

    /// Copies at most 32 bytes to the end of a value that is still zero.
    @inline(__always)
    private static func copy(_ bytes: Slice<UnsafeRawBufferPointer>, into value: inout InlineArray<32, UInt8>) {
        withUnsafeMutableBytes(of: &value) { value in
            UnsafeMutableRawBufferPointer(rebasing: value[(32 - bytes.count)...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
        }
    }

    /// Encodes `scalars` in strict DER.
    package static func der(_ scalars: ScalarPair) -> [UInt8] {
        let body = derInteger(scalars.r) + derInteger(scalars.s)
        return [0x30, UInt8(body.count)] + body
    }

    private static func derInteger(_ value: InlineArray<32, UInt8>) -> [UInt8] {
        var magnitude: [UInt8] = []
        for index in 0..<32 where !(magnitude.isEmpty && value[index] == 0 && index < 31) {
            magnitude.append(value[index])
        }
        if magnitude[0] >= 0x80 { magnitude.insert(0, at: 0) }
        return [0x02, UInt8(magnitude.count)] + magnitude
    }

    /// Encodes `scalars` as 64 bytes.
    package static func raw(_ scalars: ScalarPair) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64)
        for index in 0..<32 { bytes.append(scalars.r[index]) }
        for index in 0..<32 { bytes.append(scalars.s[index]) }
        return bytes
    }
}
