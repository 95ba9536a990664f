/// Milliseconds that only go forward, injected so that tests replay.
public struct MonotonicClock: Sendable {
    private let read: @Sendable () -> UInt64

    public init(_ read: @escaping @Sendable () -> UInt64) {
        self.read = read
    }

    /// Milliseconds since some fixed moment.
    public var milliseconds: UInt64 { read() }

    /// The system's clock, counted from the first use in this process.
    public static let system: MonotonicClock = {
        let start = ContinuousClock.now
        return MonotonicClock {
            let elapsed = (ContinuousClock.now - start).components
            return UInt64(elapsed.seconds) * 1000 + UInt64(elapsed.attoseconds / 1_000_000_000_000_000)
        }
    }()
}

/// Random bytes, injected so that tests replay.
public struct RandomSource: Sendable {
    private let fill: @Sendable (UnsafeMutableRawBufferPointer) -> Void

    public init(_ fill: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void) {
        self.fill = fill
    }

    /// Overwrites `buffer` with random bytes.
    public func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        fill(buffer)
    }

    /// `count` random bytes.
    public func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            fill(UnsafeMutableRawBufferPointer(buffer))
            initialized = count
        }
    }

    /// The system's cryptographic random source.
    public static let system = RandomSource { buffer in
        var generator = SystemRandomNumberGenerator()
        var offset = 0
        while offset < buffer.count {
            let word: UInt64 = generator.next()
            withUnsafeBytes(of: word) { source in
                let count = min(8, buffer.count - offset)
                UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<offset + count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<count]))
                offset += count
            }
        }
    }

    /// A repeatable stream for tests and benchmarks (xorshift64*): not for secrets.
    public static func seeded(_ seed: UInt64) -> RandomSource {
        let state = SeededState(seed)
        return RandomSource { buffer in state.fill(buffer) }
    }
}
