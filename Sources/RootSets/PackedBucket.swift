import Core

/// One collaboration's record inside a packed bucket, borrowed:
///
///     0  length of the identifier (1)   1  policy (1), with 0x80: the roots stand in `large`
///     2  window in seconds (4)          6  roots in the set (4)
///    10  identifier, then the roots in ascending order, unless they stand in `large`
struct PackedRecord {
    static let headerBytes = 10
    static let largeFlag: UInt8 = 0x80

    let identifier: UnsafeRawBufferPointer
    let policy: ProofPolicy
    let rootCount: UInt32
    let isLarge: Bool
    let roots: PackedRoots

    init(_ bytes: UnsafeRawBufferPointer) throws(StorageFailure) {
        let damage = StorageFailure.damaged("a collaboration's record is damaged")
        guard bytes.count >= PackedRecord.headerBytes else { throw damage }
        let rootsStart = PackedRecord.headerBytes + Int(bytes[0])
        rootCount = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 6, as: UInt32.self))
        isLarge = bytes[1] & PackedRecord.largeFlag != 0
        guard
            let policy = ProofPolicy(
                kind: bytes[1] & ~PackedRecord.largeFlag,
                windowSeconds: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt32.self))),
            bytes.count == rootsStart + (isLarge ? 0 : Int(rootCount) * Digest.byteCount)
        else { throw damage }
        self.policy = policy
        identifier = UnsafeRawBufferPointer(rebasing: bytes[PackedRecord.headerBytes..<rootsStart])
        roots = PackedRoots(UnsafeRawBufferPointer(rebasing: bytes[rootsStart...]))
    }

    /// The bytes of a record. `roots`: ascending, `nil` when they stand in `large`.
    static func encode(
        _ identifier: CollaborationIdentifier, _ policy: ProofPolicy, rootCount: UInt32, roots: [Digest]?
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        precondition(
            roots.map { $0.count == Int(rootCount) } ?? true, "a record has another number of roots than it says")
        assert(roots.map(PackedRoots.areAscending) ?? true, "a record's roots are not in ascending order")
        bytes.reserveCapacity(headerBytes + identifier.utf8.count + (roots?.count ?? 0) * Digest.byteCount)
        bytes.append(UInt8(identifier.utf8.count))
        bytes.append(policy.code.kind | (roots == nil ? largeFlag : 0))
        withUnsafeBytes(of: policy.code.windowSeconds.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: rootCount.littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: identifier.utf8)
        roots?.withUnsafeBytes { bytes.append(contentsOf: $0) }
        assert(bytes.count == headerBytes + identifier.utf8.count + (roots?.count ?? 0) * Digest.byteCount)
        return bytes
    }
}

/// The value of a packed bucket, borrowed: the records of collaborations whose
/// hashes are neighbours, in the order of their hashes, behind a directory that
/// finds one in a cache line or two.
///
///     records (2)  zero (2)  each record: low half of its hash (4)  each record: where it begins (2)
///     the records
struct PackedBucket {
    static let headerBytes = 4
    static let directoryBytes = 6
    /// What fits on one overflow page of LMDB's: a page of 4,096 bytes less its header of 16.
    static let byteCountMax = 4080

    let bytes: UnsafeRawBufferPointer
    let count: Int

    init(_ bytes: UnsafeRawBufferPointer) throws(StorageFailure) {
        self.bytes = bytes
        guard bytes.count >= PackedBucket.headerBytes else { throw .damaged("a bucket is damaged") }
        count = Int(UInt16(littleEndian: bytes.loadUnaligned(as: UInt16.self)))
        guard bytes.count >= PackedBucket.headerBytes + count * PackedBucket.directoryBytes else {
            throw .damaged("a bucket is damaged")
        }
    }

    func tag(_ index: Int) -> UInt32 {
        assert(index >= 0 && index < count, "a bucket has no such record")
        return UInt32(
            littleEndian: bytes.loadUnaligned(fromByteOffset: PackedBucket.headerBytes + 4 * index, as: UInt32.self))
    }

    /// Where a record begins; the end of the value for `count`.
    func start(_ index: Int) -> Int {
        assert(index >= 0 && index <= count, "a bucket has no such record")
        guard index < count else { return bytes.count }
        return Int(
            UInt16(
                littleEndian: bytes.loadUnaligned(
                    fromByteOffset: PackedBucket.headerBytes + 4 * count + 2 * index, as: UInt16.self)))
    }

    func recordBytes(_ index: Int) throws(StorageFailure) -> UnsafeRawBufferPointer {
        let (start, end) = (start(index), start(index + 1))
        guard start <= end, end <= bytes.count else { throw .damaged("a bucket is damaged") }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    func record(_ index: Int) throws(StorageFailure) -> PackedRecord {
        try PackedRecord(try recordBytes(index))
    }

    /// The position of the record of `identifier`, whose hash is `hash`; `nil` when it is not here.
    func find(_ identifier: UnsafeRawBufferPointer, hash: UInt64) throws(StorageFailure) -> Int? {
        let tag = UInt32(truncatingIfNeeded: hash)
        for index in 0..<count where self.tag(index) == tag {
            let record = try recordBytes(index)
            if record.count >= PackedRecord.headerBytes + identifier.count, Int(record[0]) == identifier.count,
                UnsafeRawBufferPointer(
                    rebasing: record[PackedRecord.headerBytes..<PackedRecord.headerBytes + identifier.count]
                ).elementsEqual(identifier)
            {
                return index
            }
        }
        return nil
    }

    /// Records of a bucket that stand one after the other.
    typealias Run = (bucket: PackedBucket, records: Range<Int>)

    /// The value of a bucket of these records, in this order. One of more than 65,535 bytes may only be taken apart
    /// again: its directory, where a record's place has two bytes, is wrong behind that.
    static func value(of runs: [Run]) -> [UInt8] {
        let count = runs.reduce(0) { $0 + $1.records.count }
        let recordsStart = headerBytes + count * directoryBytes
        let recordBytes = runs.map { $0.bucket.start($0.records.lowerBound)..<$0.bucket.start($0.records.upperBound) }
        var value: [UInt8] = []
        value.reserveCapacity(recordBytes.reduce(recordsStart) { $0 + $1.count })
        func append(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number.littleEndian) { value.append(contentsOf: $0) }
        }
        assert(runs.allSatisfy { $0.records.upperBound <= $0.bucket.count }, "a bucket has no such record")
        append(UInt16(count))
        append(UInt16(0))
        for run in runs {
            for index in run.records { append(run.bucket.tag(index)) }
        }
        var offset = recordsStart
        for run in runs {
            for index in run.records {
                append(UInt16(truncatingIfNeeded: offset))
                offset += run.bucket.start(index + 1) - run.bucket.start(index)
            }
        }
        assert(value.count == recordsStart, "a bucket's directory has another length than its records need")
        for (run, bytes) in zip(runs, recordBytes) { value.append(contentsOf: run.bucket.bytes[bytes]) }
        precondition(value.count == offset, "a bucket's records have another length than its directory says")
        return value
    }

    /// The value of a bucket of one record.
    static func value(ofRecord record: [UInt8], tag: UInt32) -> [UInt8] {
        precondition(record.count >= PackedRecord.headerBytes, "a record is shorter than its header")
        var value: [UInt8] = [1, 0, 0, 0]
        withUnsafeBytes(of: tag.littleEndian) { value.append(contentsOf: $0) }
        value += [UInt8(headerBytes + directoryBytes), 0]
        return value + record
    }
}
