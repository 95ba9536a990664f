/// The state of `RandomSource.seeded`. All copies of the source share this one stream.
final class SeededState: Sendable {
    private let state: Lock<UInt64>

    init(_ seed: UInt64) {
        state = Lock(seed | 1)
    }

    func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        state.withLock { state in
            for index in buffer.indices {
                state ^= state >> 12
                state ^= state << 25
                state ^= state >> 27
                buffer[index] = UInt8(truncatingIfNeeded: (state &* 0x2545_f491_4f6c_dd1d) >> 56)
            }
        }
    }
}
