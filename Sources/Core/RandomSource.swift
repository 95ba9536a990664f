import Foundation

/// A source of random bytes. Tests inject their own, so that their runs can be repeated.
public struct RandomSource: Sendable {
    private let fill: @Sendable (UnsafeMutableRawBufferPointer) -> Void

    public init(_ fill: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void) {
        self.fill = fill
    }

    /// Overwrites `buffer` with random bytes.
    public func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        fill(buffer)
    }

    /// Returns `count` random bytes.
    public func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            fill(UnsafeMutableRawBufferPointer(buffer))
            initialized = count
        }
    }

    /// The system's cryptographic random source.
    public static let system = RandomSource { buffer in
        // The system fills at most 256 bytes in one call.
        for start in stride(from: 0, to: buffer.count, by: 256) {
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<min(start + 256, buffer.count)])
            guard getentropy(piece.baseAddress, piece.count) != 0 else { continue }
            // The call fails only on a system that lacks it. Swift's generator has other sources.
            var generator = SystemRandomNumberGenerator()
            for index in piece.indices { piece[index] = generator.next() }
        }
    }

    /// Makes a repeatable stream (xorshift64*) for tests and benchmarks. Not for secrets.
    public static func seeded(_ seed: UInt64) -> RandomSource {
        let state = SeededState(seed)
        return RandomSource { buffer in state.fill(buffer) }
    }
}
