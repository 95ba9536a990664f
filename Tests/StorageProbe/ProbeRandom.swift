import Core

/// A repeatable stream of bytes (xorshift64*).
struct ProbeRandom {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return UInt8(truncatingIfNeeded: (state &* 0x2545_f491_4f6c_dd1d) >> 56)
        }
    }

    mutating func digest() -> Digest { Digest(bytes(32)) ?? .zero }
}
