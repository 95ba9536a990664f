import Core

/// The sequence of the last commit that wrote to `packed` or `large`. Two snapshots with the same version have the same
/// pages of both databases, even if commits in between wrote to other databases.
struct SetsVersion: Equatable {
    static let key = Array("sets".utf8)

    let sequence: UInt64

    /// The version before the first write.
    static let initial = SetsVersion(sequence: 0)

    init(sequence: UInt64) {
        self.sequence = sequence
    }

    init(reading value: UnsafeRawBufferPointer) throws(StorageFailure) {
        guard value.count == 8 else { throw .damaged("the version of the sets is damaged") }
        sequence = UInt64(littleEndian: value.loadUnaligned(as: UInt64.self))
    }

    var bytes: [UInt8] { withUnsafeBytes(of: sequence.littleEndian) { Array($0) } }
}
