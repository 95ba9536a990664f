import Foundation

/// A clock in milliseconds that never goes back. Tests inject their own, so that their runs can be repeated.
public struct MonotonicClock: Sendable {
    private let read: @Sendable () -> UInt64

    public init(_ read: @escaping @Sendable () -> UInt64) {
        self.read = read
    }

    /// Milliseconds since an arbitrary fixed moment.
    public var milliseconds: UInt64 { read() }

    /// The system's clock in nanoseconds, for measuring how long something takes.
    package static var nanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// The system's clock, counted from the first use in this process.
    public static let system: MonotonicClock = {
        @Sendable func now() -> UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
        }
        let start = now()
        return MonotonicClock { now() - start }
    }()
}
