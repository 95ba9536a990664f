package import Core
import Hashing

/// How far a storage has applied the log that it shares with others. It is written in the commit that applies a
/// segment, so it always fits what is stored.
package struct SharedPlace: Equatable, Sendable {
    static let key = Array("shared".utf8)

    /// The number of the last segment that was applied.
    package let number: UInt64
    /// The hash of that segment.
    package let hash: Digest
    /// The hash of the first segment. It tells the log from every other one.
    package let founding: Digest
    /// Bytes of change log that are kept, as the first segment says.
    package let logRetentionBytes: UInt64

    /// The place behind a first segment.
    init(founding hash: Digest, _ founding: Segment.Founding) {
        (number, self.hash, self.founding) = (1, hash, hash)
        logRetentionBytes = founding.logRetentionBytes
    }

    private init(number: UInt64, hash: Digest, founding: Digest, logRetentionBytes: UInt64) {
        (self.number, self.hash, self.founding) = (number, hash, founding)
        self.logRetentionBytes = logRetentionBytes
    }

    init(reading value: UnsafeRawBufferPointer) throws(StorageFailure) {
        var reader = ByteReader(value)
        guard let number: UInt64 = reader.integer(), let hash = reader.digest(), let founding = reader.digest(),
            let retention: UInt64 = reader.integer(), reader.isAtEnd, number > 0
        else { throw .damaged("the place in the shared log is damaged") }
        self.init(number: number, hash: hash, founding: founding, logRetentionBytes: retention)
    }

    /// The place that a transaction finds; `nil` in a storage that shares no log, or has not begun with it.
    static func read(_ value: SealedValue?) throws(StorageFailure) -> SharedPlace? {
        guard let value else { return nil }
        return try SharedPlace(reading: value.contents)
    }

    /// The place behind the next segment.
    func following(hash: Digest) -> SharedPlace {
        SharedPlace(number: number + 1, hash: hash, founding: founding, logRetentionBytes: logRetentionBytes)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendInteger(number)
        bytes.appendDigests([hash, founding])
        bytes.appendInteger(logRetentionBytes)
        return bytes
    }
}
