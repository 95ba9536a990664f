/// A 64-bit checksum of bytes, for finding damage. It is no defence against somebody who can write to the disk: who
/// changes a value can compute its checksum.
///
/// Each step multiplies two words to 128 bits and adds the halves without carry, as wyhash does (Wang Yi, 2019). Blocks
/// of 64 bytes go through four lanes that do not wait for each other. Another value has the same checksum with a
/// probability of about 2^-64, whichever bits differ.
enum Checksum {
    // Odd constants with as many ones as zeros: the first decimals of sqrt(2), sqrt(3), sqrt(5) and sqrt(7) in binary.
    private static let first: UInt64 = 0x6a09_e667_f3bc_c909
    private static let second: UInt64 = 0xbb67_ae85_84ca_a73b
    private static let third: UInt64 = 0x3c6e_f372_fe94_f82b
    private static let fourth: UInt64 = 0xa54f_f53a_5f1d_36f1

    @inline(__always)
    static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let product = a.multipliedFullWidth(by: b)
        return product.high ^ product.low
    }

    /// The checksum of `bytes`. Other seeds give other checksums of the same bytes.
    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        let count = bytes.count
        guard count > 0, let start = bytes.baseAddress else { return fold(seed ^ first, second) }
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        var offset = 0
        var hash = seed ^ first
        if count >= 64 {
            var (b, c, d) = (seed ^ second, seed ^ third, seed ^ fourth)
            repeat {
                hash = fold(word(offset) ^ first, word(offset + 8) ^ hash)
                b = fold(word(offset + 16) ^ second, word(offset + 24) ^ b)
                c = fold(word(offset + 32) ^ third, word(offset + 40) ^ c)
                d = fold(word(offset + 48) ^ fourth, word(offset + 56) ^ d)
                offset += 64
            } while count - offset >= 64
            hash = fold(hash ^ second, b ^ third) ^ fold(c ^ fourth, d ^ first)
        }
        while count - offset >= 16 {
            hash = fold(word(offset) ^ second, word(offset + 8) ^ hash)
            offset += 16
        }
        // The last bytes; some are read twice when there are not 16.
        let left = count - offset
        var (low, high): (UInt64, UInt64) = (0, 0)
        if left >= 8 {
            (low, high) = (word(offset), word(count - 8))
        } else {
            for index in 0..<left { low |= UInt64(bytes[offset + index]) << UInt64(8 * index) }
        }
        return fold(UInt64(truncatingIfNeeded: count) ^ third, fold(low ^ fourth, high ^ hash))
    }
}
