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

    /// Encodes a record. `roots` ascend; `nil` when they are in `large`.
    static func encode(
        _ identifier: CollaborationIdentifier, _ policy: ProofPolicy, rootCount: UInt32, roots: [Digest]?
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        precondition(
            roots.map { $0.count == Int(rootCount) } ?? true, "a record's number of roots is wrong")
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

/// The contents of a packed bucket, borrowed. It holds the records of collaborations with neighbouring hashes, in the
/// order of these hashes. A directory before the records locates one with one or two cache lines:
///
///     records (2)  zero (2)  each record: low half of its hash (4)  each record: where it begins (2)
///     the records
struct PackedBucket {
    static let headerBytes = 4
    static let directoryBytes = 6
    /// The bytes that fit on one overflow page of LMDB's: 4,096 less a header of 16 and the seal.
    static let byteCountMax = 4080 - SealedValue.sealBytes

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

    /// Reads a bucket to change it. Also checks where its records begin, so that their bytes can be copied.
    init(checking bytes: UnsafeRawBufferPointer) throws(StorageFailure) {
        try self.init(bytes)
        var least = PackedBucket.headerBytes + count * PackedBucket.directoryBytes
        for index in 0...count {
            guard start(index) >= least, start(index) <= bytes.count else { throw .damaged("a bucket is damaged") }
            least = start(index)
        }
    }

    func tag(_ index: Int) -> UInt32 {
        assert(index >= 0 && index < count, "a bucket has no such record")
        return UInt32(
            littleEndian: bytes.loadUnaligned(fromByteOffset: PackedBucket.headerBytes + 4 * index, as: UInt32.self))
    }

    /// The offset of a record; for `count`, the end of the value.
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

    /// Finds the position of the record of `identifier`, whose hash is `hash`; `nil` when the bucket does not have it.
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

    /// Adjacent records of a bucket.
    typealias Run = (bucket: PackedBucket, records: Range<Int>)

    /// Encodes a bucket of these records, in this order. The offsets in its directory have two bytes. So in a value of
    /// more than 65,535 bytes the offsets beyond that are wrong. Such a value may only be split into smaller buckets.
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
        assert(value.count == recordsStart, "the length of a bucket's directory is wrong")
        for (run, bytes) in zip(runs, recordBytes) { value.append(contentsOf: run.bucket.bytes[bytes]) }
        precondition(value.count == offset, "the length of a bucket's records is wrong")
        return value
    }

    /// Encodes a bucket of one record.
    static func value(ofRecord record: [UInt8], tag: UInt32) -> [UInt8] {
        precondition(record.count >= PackedRecord.headerBytes, "a record is shorter than its header")
        var value: [UInt8] = [1, 0, 0, 0]
        withUnsafeBytes(of: tag.littleEndian) { value.append(contentsOf: $0) }
        value += [UInt8(headerBytes + directoryBytes), 0]
        return value + record
    }
}
