package import Core
import Hashing

/// One entry of a log that several storages share: mutations in order, or what founds the log. Every storage applies
/// the same segments in the same order, so all of them come to hold the same.
///
/// Its bytes; integers are little-endian:
///
///     0  format (1): 1
///     1  kind (1): 1 founding, 2 mutations
///     2  zeros (2)
///     4  number of mutations (4); 0 in a founding, and in a segment that only continues a log that was lost
///     8  identifier (16), random: no two segments have the same bytes
///    24  hash (32) of the segment before; zeros in a founding
///    56  each mutation: length (4), and a record of the change log (`LogRecord`) in which the checksum and the number
///        of changes are 0
///
/// The hash of a segment is the SHA-256 of its bytes. So the hash of the last segment covers the whole log.
package struct Segment: Equatable, Sendable {
    package enum Contents: Equatable, Sendable {
        case founding(Founding)
        case mutations([Mutation])
    }

    /// What all storages that share a log have in common. It is the first segment.
    package struct Founding: Equatable, Sendable {
        static let byteCount = 24
        /// Bytes of the key for hashing names.
        package static let hashKeyBytes = 16

        /// The key for hashing names. The place of a collaboration among the others follows from it.
        package let hashKey: [UInt8]
        /// Bytes of change log that each storage keeps. What it still keeps decides which repetitions it recognizes.
        package let logRetentionBytes: UInt64

        package init(hashKey: [UInt8], logRetentionBytes: UInt64) {
            precondition(hashKey.count == Founding.hashKeyBytes, "a key for hashing names has another length")
            (self.hashKey, self.logRetentionBytes) = (hashKey, logRetentionBytes)
        }
    }

    static let format: UInt8 = 1
    static let headerBytes = 56

    private enum Kind {
        static let founding: UInt8 = 1
        static let mutations: UInt8 = 2
    }

    package let identifier: UInt128
    /// The hash of the segment before; zeros in a founding.
    package let previous: Digest
    package let contents: Contents

    package init(identifier: UInt128, after previous: Digest, _ contents: Contents) {
        (self.identifier, self.previous, self.contents) = (identifier, previous, contents)
    }

    /// The hash of a segment with these bytes.
    static func hash(_ bytes: [UInt8]) -> Digest { SHA256.hash(bytes) }

    package var bytes: [UInt8] {
        var bytes: [UInt8] = [Segment.format]
        switch contents {
        case .founding(let founding):
            bytes.append(contentsOf: [Kind.founding, 0, 0])
            bytes.appendInteger(UInt32(0))
            appendIdentity(to: &bytes)
            bytes.append(contentsOf: founding.hashKey)
            bytes.appendInteger(founding.logRetentionBytes)
        case .mutations(let mutations):
            bytes.append(contentsOf: [Kind.mutations, 0, 0])
            bytes.appendInteger(UInt32(mutations.count))
            appendIdentity(to: &bytes)
            var record: [UInt8] = []
            for mutation in mutations {
                LogRecord.encode(mutation, changed: 0, after: 0, into: &record)
                bytes.appendInteger(UInt32(record.count))
                bytes.append(contentsOf: record)
            }
        }
        return bytes
    }

    private func appendIdentity(to bytes: inout [UInt8]) {
        bytes.appendInteger(identifier)
        previous.withUnsafeBytes { bytes.append(contentsOf: $0) }
    }

    /// Reads what `bytes` wrote; `nil` when they are anything else.
    package init?(_ bytes: [UInt8]) {
        let segment = bytes.withUnsafeBytes { Segment.read($0) }
        guard let segment else { return nil }
        self = segment
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) -> Segment? {
        var reader = ByteReader(bytes)
        guard reader.byte() == format, let kind = reader.byte(), reader.integer() == UInt16(0),
            let count: UInt32 = reader.integer(), let identifier: UInt128 = reader.integer(),
            let previous = reader.digest()
        else { return nil }
        switch kind {
        case Kind.founding:
            guard count == 0, previous == .zero, let key = reader.bytes(Founding.hashKeyBytes),
                let retention: UInt64 = reader.integer(), reader.isAtEnd
            else { return nil }
            let founding = Founding(hashKey: Array(key), logRetentionBytes: retention)
            return Segment(identifier: identifier, after: previous, .founding(founding))
        case Kind.mutations:
            guard count <= Limits.mutationsPerCommitMax else { return nil }
            var mutations: [Mutation] = []
            for _ in 0..<count {
                guard let length: UInt32 = reader.integer(), let record = reader.bytes(Int(length)),
                    let mutation = mutation(in: record)
                else { return nil }
                mutations.append(mutation)
            }
            guard reader.isAtEnd else { return nil }
            return Segment(identifier: identifier, after: previous, .mutations(mutations))
        default: return nil
        }
    }

    private static func mutation(in record: UnsafeRawBufferPointer) -> Mutation? {
        guard let mutation = try? LogRecord.decode(record, sequence: 0).mutation else { return nil }
        // A mutation has one form only.
        var written: [UInt8] = []
        LogRecord.encode(mutation, changed: 0, after: 0, into: &written)
        return written.elementsEqual(record) ? mutation : nil
    }
}
