/// A repeatable stream of random choices (SplitMix64).
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) {
        state = seed
    }

    /// The stream of one part of a run. Streams of different parts have nothing in common, so what one part draws
    /// changes nothing for another.
    init(_ seed: UInt64, part: UInt64) {
        var mixed = Dice(seed ^ part &* 0xd6e8_feb8_6659_fd93)
        state = mixed.next()
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    /// A number from 0 to `end` - 1.
    mutating func below(_ end: Int) -> Int { Int(truncatingIfNeeded: next() % UInt64(end)) }

    /// True once in so many times.
    mutating func isOne(in count: Int) -> Bool { below(count) == 0 }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}
