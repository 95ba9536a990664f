import Core

/// Counts over the whole environment. They are written in the transaction that changes them.
struct Totals: Equatable {
    static let byteCount = 40

    /// The last sequence that was assigned; 0 before the first.
    var sequence: UInt64 = 0
    /// The first sequence that is still in the log; `sequence + 1` when the log is empty.
    var firstSequence: UInt64 = 1
    /// Bytes of the log's values.
    var logValueBytes: UInt64 = 0
    var collaborations: UInt64 = 0
    var roots: UInt64 = 0

    /// Real sequences and log sizes stay below this. A greater number means damage.
    private static let plausibleMax: UInt64 = 1 << 56

    /// Bytes that the log takes, including what LMDB and `mutations` need for each record.
    var logBytes: UInt64 { logValueBytes + (sequence + 1 - firstSequence) * LogRecord.overheadBytes }

    init() {}

    init(reading value: UnsafeRawBufferPointer) throws(StorageFailure) {
        guard value.count == Totals.byteCount else { throw .damaged("the totals are damaged") }
        func word(_ index: Int) -> UInt64 {
            UInt64(littleEndian: value.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        sequence = word(0)
        firstSequence = word(1)
        logValueBytes = word(2)
        guard sequence < Totals.plausibleMax, logValueBytes < Totals.plausibleMax, firstSequence > 0,
            firstSequence <= sequence + 1
        else { throw .damaged("the totals are damaged") }
        collaborations = word(3)
        roots = word(4)
    }

    /// Subtracts roots from the count. Throws `damaged` when the count is smaller.
    mutating func removeRoots(_ count: UInt64) throws(StorageFailure) {
        guard roots >= count else { throw .damaged("the totals count fewer roots than there are") }
        roots -= count
    }

    /// Subtracts one collaboration from the count. Throws `damaged` when the count is 0.
    mutating func removeCollaboration() throws(StorageFailure) {
        guard collaborations > 0 else { throw .damaged("the totals count fewer collaborations than there are") }
        collaborations -= 1
    }

    var bytes: [UInt8] {
        precondition(firstSequence > 0 && firstSequence <= sequence + 1, "the log begins after its end")
        var bytes: [UInt8] = []
        for word in [sequence, firstSequence, logValueBytes, collaborations, roots] {
            withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }
}
