import Core

/// Counts over the whole environment. They are written in the transaction that changes them.
struct Totals: Equatable {
    static let key = Array("totals".utf8)
    static let byteCount = 64 + Tallies.byteCount

    /// The last sequence that was assigned; 0 before the first.
    var sequence: UInt64 = 0
    /// The first sequence that is still in the log; `sequence + 1` when the log is empty.
    var firstSequence: UInt64 = 1
    /// Bytes of the log's values.
    var logValueBytes: UInt64 = 0
    var collaborations: UInt64 = 0
    var roots: UInt64 = 0
    /// The checksum of the last record of the log, and that of the record before the first one that is still there; 0
    /// when there was none.
    var chainHead: UInt64 = 0
    var chainStart: UInt64 = 0
    /// LMDB's number of the transaction that wrote them. Every commit writes the totals. So older ones than the
    /// snapshot are those of an older version of the whole file. (A compacted copy begins to count anew: there they are
    /// newer.)
    var transaction: UInt64 = 0
    /// The values of all databases, without the totals themselves.
    var tallies = Tallies()

    /// Real sequences and log sizes stay below this. A greater number means damage.
    private static let plausibleMax = SealedValue.versionMax

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
        chainHead = word(5)
        chainStart = word(6)
        transaction = word(7)
        guard let tallies = Tallies(UnsafeRawBufferPointer(rebasing: value[64...])) else {
            throw .damaged("the totals are damaged")
        }
        self.tallies = tallies
    }

    /// Reads the totals of format 1: the first five numbers, without the log's bytes, which are counted anew.
    init(readingFormat1 value: UnsafeRawBufferPointer) throws(StorageFailure) {
        guard value.count == 40 else { throw .damaged("the totals are damaged") }
        func word(_ index: Int) -> UInt64 {
            UInt64(littleEndian: value.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        (sequence, firstSequence, collaborations, roots) = (word(0), word(1), word(3), word(4))
        guard sequence < Totals.plausibleMax, firstSequence > 0, firstSequence <= sequence + 1 else {
            throw .damaged("the totals are damaged")
        }
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
        for word in [sequence, firstSequence, logValueBytes, collaborations, roots] { bytes.appendInteger(word) }
        for word in [chainHead, chainStart, transaction] { bytes.appendInteger(word) }
        tallies.append(to: &bytes)
        return bytes
    }
}
