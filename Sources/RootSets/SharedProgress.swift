package import Core

/// How far a storage has come with the log that it shares.
package struct SharedProgress: Equatable, Sendable {
    /// What a storage holds behind a segment whose number is a multiple of `interval`, so that storages which are not
    /// at the same segment can be compared.
    package struct Checkpoint: Equatable, Sendable {
        package static let interval: UInt64 = 64

        package let segment: UInt64
        /// See `SharedContents`.
        package let digest: Digest

        package init(segment: UInt64, digest: Digest) {
            (self.segment, self.digest) = (segment, digest)
        }
    }

    /// The number of the last segment that was applied; 0: none was.
    package var segment: UInt64 = 0
    /// The hash of that segment.
    package var hash: Digest?
    /// The hash of the first segment, which tells the log from every other one.
    package var founding: Digest?
    /// What the storage holds behind it, see `SharedContents`.
    package var digest: Digest?
    /// The sequence of the last change in it.
    package var sequence: UInt64 = 0
    /// The last one that was passed since the start.
    package var checkpoint: Checkpoint?

    package init() {}
}

/// The storage that follows a shared log, as the log sees it. Any thread may call its functions.
package struct SharedFollower: Sendable {
    /// Says that the log may have something new. It need not be called for everything: the storage looks from time to
    /// time all the same.
    package let ring: @Sendable () -> Void
    package let progress: @Sendable () -> SharedProgress
    /// As of when the storage had everything of the log, in milliseconds of the log's clock; 0: at no time.
    package let freshAsOf: @Sendable () -> UInt64
    /// Says that the log had nothing behind the storage's progress when it was asked at that time.
    package let fresh: @Sendable (UInt64) -> Void
    /// Says that most other storages hold something else, with the reason. Then nothing is answered from this one.
    package let disagree: @Sendable (String) -> Void

    package init(
        ring: @escaping @Sendable () -> Void, progress: @escaping @Sendable () -> SharedProgress,
        freshAsOf: @escaping @Sendable () -> UInt64, fresh: @escaping @Sendable (UInt64) -> Void,
        disagree: @escaping @Sendable (String) -> Void
    ) {
        (self.ring, self.progress, self.disagree) = (ring, progress, disagree)
        (self.freshAsOf, self.fresh) = (freshAsOf, fresh)
    }
}
