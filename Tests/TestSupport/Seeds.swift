package import Core
import Foundation

/// A repeatable stream of numbers (SplitMix64) for property tests.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    /// `count` random bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }

    /// A random digest.
    package mutating func digest() -> Digest {
        Digest(bytes(32)) ?? .zero
    }
}

/// The seed of this run: fresh for each, or `ROOTGATE_TEST_SEED`; printed, so that a failure can be repeated.
package let runSeed: UInt64 = {
    let given = ProcessInfo.processInfo.environment["ROOTGATE_TEST_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1...0xffff_ffff)
    print("ROOTGATE_TEST_SEED=\(seed)")
    return seed
}()
