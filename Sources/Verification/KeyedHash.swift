package import Core

/// Hashes numbers that a peer may choose to places that he can't foresee, with random keys.
///
/// It is not for tags: somebody who sees many hashes could find the keys.
package struct KeyedHash: Sendable {
    private let first: UInt64
    private let second: UInt64

    package init(random: RandomSource = .system) {
        func key() -> UInt64 { random.bytes(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } }
        // Multiplication by an odd number loses nothing.
        (first, second) = (key() | 1, key() | 1)
    }

    /// All 64 bits depend on all bits of the number.
    @inline(__always)
    func callAsFunction(_ number: UInt64) -> UInt64 {
        let once = (number ^ second).multipliedFullWidth(by: first)
        let twice = (once.high ^ once.low ^ first).multipliedFullWidth(by: second)
        return twice.high ^ twice.low
    }

    @inline(__always)
    func callAsFunction(_ number: UInt128) -> UInt64 {
        self(self(UInt64(truncatingIfNeeded: number)) ^ UInt64(truncatingIfNeeded: number >> 64))
    }
}
