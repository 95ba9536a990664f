import CLMDB
import Core

/// Applies mutations inside one write transaction.
///
/// It is deterministic: the same mutations in the same order make the same sets and the same log. It reads no clock and
/// no random numbers. A refused mutation has written nothing, so the transaction can continue.
struct Applier {
    let transaction: WriteTransaction
    let environment: StorageEnvironment
    private(set) var totals: Totals
    private var value: [UInt8] = []
    /// Whether the mutation that is applied gets a log record.
    private var isLogged = true

    /// The sequence of the last mutation that was applied.
    var sequence: UInt64 { totals.sequence }

    /// The sequence of the oldest record of the change log.
    var firstSequence: UInt64 { totals.firstSequence }

    /// The most roots of a packed collaboration. With more, its roots are in `large`.
    static let packedRootsMax = 48
    /// A bucket of `large` with more roots than this is split. The largest node that LMDB keeps inside a 4 KiB page is
    /// 2,038 bytes, which holds the 8-byte header, a key of 137 bytes and 59 roots of 32. Three roots less make the
    /// pieces of a split even.
    static let bucketRootsMax = 56
    /// A bucket of `large` with at most this many roots is merged into the next bucket, if both together fill at most
    /// three quarters of a bucket.
    static let bucketRootsFew = 14

    init(_ transaction: WriteTransaction, _ environment: StorageEnvironment) throws(StorageFailure) {
        self.transaction = transaction
        self.environment = environment
        totals = try transaction.totals(in: environment.meta)
    }

    /// Applies one mutation and logs it. Returns the first receipt when the mutation was applied before, or the error
    /// that refuses it. After a thrown failure the transaction must be aborted.
    ///
    /// `lack`: the error that refuses the mutation because it needs space; `nil` when it needs none or there is room.
    ///
    /// `isLogged`: false for a removal for whose log record there is no room. Then the whole log goes, as if it was
    /// trimmed: followers read the sets anew, and repeats are not recognized.
    mutating func apply(
        _ mutation: Mutation, lack: ServiceError?, isLogged: Bool = true
    ) throws(StorageFailure) -> Result<MutationReceipt, ServiceError> {
        precondition(isLogged || !mutation.change.needsSpace, "an addition is not logged")
        let before = totals
        self.isLogged = isLogged
        let result: Result<MutationReceipt, ServiceError>
        if let repeated = try receipt(ofRepeated: mutation) {
            result = repeated
        } else {
            result = try outcome(of: mutation, lack: lack)
        }
        switch result {
        case .failure: precondition(totals == before, "a refused mutation has changed the totals")
        case .success(let receipt) where receipt.isRepeat:
            precondition(totals == before, "a repeated mutation has changed the totals")
        case .success(let receipt):
            precondition(totals.sequence == before.sequence + 1, "a mutation has not exactly one sequence")
            precondition(receipt.sequence == totals.sequence, "a receipt has the sequence of another mutation")
            precondition(!isLogged || totals.logValueBytes > before.logValueBytes, "a mutation was not logged")
            checkCounts(of: mutation, changed: receipt.changed, before)
        }
        return result
    }

    /// Traps unless the totals have changed by what a mutation says that it changed.
    private func checkCounts(of mutation: Mutation, changed: UInt64, _ before: Totals) {
        let came = totals.collaborations &- before.collaborations
        switch mutation.change {
        case .createCollaboration:
            precondition(came == changed && totals.roots == before.roots, "creating changed something else, too")
        case .dropCollaboration:
            precondition(came == 0 &- changed && changed == 1, "dropping removed another number of collaborations")
            precondition(totals.roots <= before.roots, "dropping a collaboration added roots")
        case .addRoots:
            precondition(came == 0, "adding roots changed the number of collaborations")
            precondition(totals.roots == before.roots + changed, "the totals count other roots than were added")
        case .removeRoots:
            precondition(came == 0, "removing roots changed the number of collaborations")
            precondition(totals.roots + changed == before.roots, "the totals count other roots than were removed")
        case .edit(let edit):
            let isUnchanged = totals.roots == before.roots && came == 0
            precondition(edit.collaboration != nil || isUnchanged && changed == 0, "an edit of records changed a set")
        }
    }

    private mutating func outcome(
        of mutation: Mutation, lack: ServiceError?
    ) throws(StorageFailure) -> Result<MutationReceipt, ServiceError> {
        let changed: UInt64
        switch mutation.change {
        case .createCollaboration(let identifier, let policy):
            if let present = try set(of: identifier) {
                guard present.policy == policy else { return .failure(Applier.exists(identifier)) }
                changed = 0
            } else {
                if let lack { return .failure(lack) }
                try put(PackedRecord.encode(identifier, policy, rootCount: 0, roots: []), of: identifier)
                totals.collaborations += 1
                changed = 1
            }
        case .dropCollaboration(let identifier):
            guard let present = try set(of: identifier) else { return .failure(unknown(identifier)) }
            changed = try drop(identifier, present)
        case .addRoots(let identifier, let roots):
            guard let present = try set(of: identifier) else { return .failure(unknown(identifier)) }
            if let lack { return .failure(lack) }
            let roots = roots.sorted()
            if let refusal = try refusal(ofAdding: roots, to: identifier, present) { return .failure(refusal) }
            changed = try edit(identifier, present, roots, adding: true)
            totals.roots += changed
        case .removeRoots(let identifier, let roots):
            guard let present = try set(of: identifier) else { return .failure(unknown(identifier)) }
            changed = try edit(identifier, present, roots.sorted(), adding: false)
            try totals.removeRoots(changed)
        case .edit(let edit):
            if let refusal = try refusal(of: edit) { return .failure(refusal) }
            if let lack { return .failure(lack) }
            switch try applySets(of: edit) {
            case .success(let count): changed = count
            case .failure(let refusal): return .failure(refusal)
            }
            try writeRecords(of: edit, sequence: totals.sequence + 1)
        }
        if isLogged { try log(mutation, changed: changed) } else { try emptyLog() }
        return .success(MutationReceipt(sequence: totals.sequence, changed: changed, isRepeat: false))
    }

    /// Applies an edit to its collaboration and the collaboration's set. Returns how many collaborations and root
    /// hashes were added or removed. A refusal has written nothing.
    private mutating func applySets(of edit: Edit) throws(StorageFailure) -> Result<UInt64, ServiceError> {
        guard let identifier = edit.collaboration else { return .success(0) }
        var changed: UInt64 = 0
        var present = try set(of: identifier)
        if let refusal = try refusal(ofAdding: edit.addedRoots.sorted(), to: identifier, present) {
            return .failure(refusal)
        }
        if let policy = edit.creation {
            if let present, present.policy != policy { return .failure(Applier.exists(identifier)) }
            if present == nil {
                try put(PackedRecord.encode(identifier, policy, rootCount: 0, roots: []), of: identifier)
                totals.collaborations += 1
                changed += 1
            }
        } else if present == nil {
            return .failure(unknown(identifier))
        }
        for (roots, isAdding) in [(edit.removedRoots, false), (edit.addedRoots, true)] where !roots.isEmpty {
            present = try set(of: identifier)
            guard let set = present else { throw .damaged("a collaboration disappeared while it was edited") }
            let count = try self.edit(identifier, set, roots.sorted(), adding: isAdding)
            if isAdding { totals.roots += count } else { try totals.removeRoots(count) }
            changed += count
        }
        if edit.dropsCollaboration, let last = try set(of: identifier) {
            changed += try drop(identifier, last)
        }
        return .success(changed)
    }

    private mutating func drop(_ identifier: CollaborationIdentifier, _ present: CopiedSet) throws(StorageFailure)
        -> UInt64
    {
        precondition(!identifier.utf8.isEmpty, "an empty identifier would drop the buckets of all collaborations")
        // No bucket is empty but the last.
        if present.roots == nil { try dropBuckets(of: identifier, countMax: Int(present.rootCount) + 1) }
        try put(nil, of: identifier)
        try totals.removeCollaboration()
        try totals.removeRoots(UInt64(present.rootCount))
        return 1
    }

    private static func exists(_ identifier: CollaborationIdentifier) -> ServiceError {
        ServiceError(.collaborationExists, "\(identifier) exists already with another policy or window")
    }

    /// How many log records a commit with so many mutations removes at most.
    static func trimmedRecordsMax(mutations: Int) -> Int { 64 + trimmedRecordsPerMutation * mutations }

    static let trimmedRecordsPerMutation = 2

    /// Removes the oldest log records while the log is larger than `bytes`. The last record always stays. At most
    /// `count` records are removed, so that a commit stays short. Then writes the totals and the version of the sets.
    /// Behind it nothing that the totals count may be written.
    ///
    /// `damaged` is called when the oldest record is not what was written. Unless it throws, the log stays longer.
    mutating func finish(
        trimmingLogTo bytes: UInt64, count: Int,
        damaged: (StorageFailure) throws(StorageFailure) -> Void = { failure throws(StorageFailure) in throw failure }
    ) throws(StorageFailure) {
        precondition(totals.firstSequence <= totals.sequence + 1, "the log begins after its end")
        let isEmpty = totals.firstSequence > totals.sequence
        var left = count
        while totals.logBytes > bytes, totals.firstSequence < totals.sequence, left > 0 {
            let oldest: OldestRecord
            do throws(StorageFailure) {
                oldest = try oldestRecord()
            } catch {
                guard error.isDamage else { throw error }
                try damaged(error)
                break
            }
            totals.logValueBytes -= min(totals.logValueBytes, oldest.logBytes)
            totals.chainStart = oldest.checksum
            try transaction.delete(environment.mutations, oldest.identifier)
            try transaction.delete(environment.log, bigEndianBytes(totals.firstSequence))
            totals.firstSequence += 1
            left -= 1
        }
        precondition(left >= 0, "more records were removed than one commit may remove")
        precondition(isEmpty || totals.firstSequence <= totals.sequence, "the last record was removed from the log")
        if transaction.written.contains(.packed) || transaction.written.contains(.large) {
            try transaction.put(
                environment.meta, SetsVersion.key, SetsVersion(sequence: totals.sequence).bytes,
                version: totals.sequence)
        }
        try transaction.put(totals, in: environment.meta)
    }

    // MARK: The log

    private struct OldestRecord {
        let identifier: [UInt8]
        let checksum: UInt64
        let logBytes: UInt64
    }

    /// Throws `damaged` unless the record follows the one that was removed before, and its identifier leads to it.
    private func oldestRecord() throws(StorageFailure) -> OldestRecord {
        let sequence = totals.firstSequence
        guard let record = try transaction.get(environment.log, bigEndianBytes(sequence)) else {
            throw .damaged("change-log record \(sequence) is missing")
        }
        guard try LogRecord.previous(in: record.contents) == totals.chainStart else {
            throw .damaged("change-log record \(sequence) does not follow the one before")
        }
        let identifier = try LogRecord.identifier(in: record.contents)
        guard let place = try transaction.get(environment.mutations, identifier)?.contents, place.count == 8,
            UInt64(littleEndian: place.loadUnaligned(as: UInt64.self)) == sequence
        else { throw .damaged("the identifier of change-log record \(sequence) does not lead to it") }
        return OldestRecord(identifier: identifier, checksum: record.checksum, logBytes: LogRecord.logBytes(record))
    }

    private func receipt(
        ofRepeated mutation: Mutation
    ) throws(StorageFailure) -> Result<MutationReceipt, ServiceError>? {
        let identifier = withUnsafeBytes(of: mutation.identifier.value.littleEndian) { Array($0) }
        guard let value = try transaction.get(environment.mutations, identifier)?.contents else { return nil }
        guard value.count == 8 else { throw .damaged("the record of mutation \(mutation.identifier) is damaged") }
        let sequence = UInt64(littleEndian: value.loadUnaligned(as: UInt64.self))
        guard sequence >= totals.firstSequence, sequence <= totals.sequence,
            let record = try transaction.get(environment.log, bigEndianBytes(sequence))?.contents
        else {
            throw .damaged("change-log record \(sequence) is missing")
        }
        let first = try LogRecord.decode(record, sequence: sequence)
        guard mutation.change.hasContent(of: first.mutation.change) else {
            return .failure(
                ServiceError(
                    .mutationConflict, "mutation \(mutation.identifier) was applied before with other content"))
        }
        return .success(MutationReceipt(sequence: sequence, changed: first.changed, isRepeat: true))
    }

    private mutating func log(_ mutation: Mutation, changed: UInt64) throws(StorageFailure) {
        totals.sequence += 1
        LogRecord.encode(mutation, changed: changed, after: totals.chainHead, into: &value)
        precondition(value.count >= LogRecord.headerBytes, "a log record is shorter than its header")
        assert(isRecord(value, of: mutation, changed: changed), "a log record reads back as another mutation")
        totals.chainHead = try transaction.put(
            environment.log, bigEndianBytes(totals.sequence), value, version: totals.sequence, isAppended: true)
        totals.logValueBytes += UInt64(SealedValue.sealBytes + value.count)
        // A repeated identifier was found before.
        try transaction.put(
            environment.mutations, withUnsafeBytes(of: mutation.identifier.value.littleEndian) { Array($0) },
            withUnsafeBytes(of: totals.sequence.littleEndian) { Array($0) }, version: totals.sequence, isNew: true)
    }

    /// Removes all log records, and counts a mutation that has none. The chain goes on from the last record.
    private mutating func emptyLog() throws(StorageFailure) {
        for database in [environment.log, environment.mutations] {
            try transaction.deleteAll(database)
            totals.tallies[database.name] = DatabaseTally()
        }
        totals.sequence += 1
        (totals.firstSequence, totals.logValueBytes) = (totals.sequence + 1, 0)
        totals.chainStart = totals.chainHead
    }

    private func isRecord(_ bytes: [UInt8], of mutation: Mutation, changed: UInt64) -> Bool {
        let read = try? bytes.withRawBytes { bytes throws(StorageFailure) in
            try LogRecord.decode(bytes, sequence: totals.sequence)
        }
        return read == LoggedMutation(sequence: totals.sequence, changed: changed, mutation: mutation)
    }

    // MARK: Packed records

    private func unknown(_ identifier: CollaborationIdentifier) -> ServiceError {
        ServiceError(.unknownCollaboration, "there is no collaboration \(identifier)")
    }

    /// A copy of a collaboration's record.
    private struct CopiedSet {
        let policy: ProofPolicy
        let rootCount: UInt32
        /// The roots; `nil` when they are in `large`.
        let roots: [Digest]?
    }

    private func set(of identifier: CollaborationIdentifier) throws(StorageFailure) -> CopiedSet? {
        let hash = hash(of: identifier)
        guard let (_, bucket) = try packedBucket(atOrAfter: hash), let place = try find(identifier, hash, in: bucket)
        else { return nil }
        let record = try bucket.record(place)
        let roots = record.isLarge ? nil : (0..<record.roots.count).map { record.roots[$0] }
        assert(roots.map { $0.count == record.rootCount } ?? true, "a record counts other roots than it holds")
        assert(roots.map { PackedRoots.areAscending($0) } ?? true, "a record's roots are not in ascending order")
        return CopiedSet(policy: record.policy, rootCount: record.rootCount, roots: roots)
    }

    private func hash(of identifier: CollaborationIdentifier) -> UInt64 {
        identifier.utf8.withUnsafeBytes { environment.nameHash.hash($0) }
    }

    private func find(
        _ identifier: CollaborationIdentifier, _ hash: UInt64, in bucket: PackedBucket
    ) throws(StorageFailure) -> Int? {
        try identifier.utf8.withRawBytes { name throws(StorageFailure) in try bucket.find(name, hash: hash) }
    }

    /// Finds the first packed bucket whose bound is not below `hash`. It is borrowed until the next write.
    private func packedBucket(
        atOrAfter hash: UInt64
    ) throws(StorageFailure) -> (bound: UInt64, bucket: PackedBucket)? {
        guard let found = try packedBucket(from: hash, [MDB_SET_RANGE]) else { return nil }
        guard found.bound >= hash else { throw .damaged("the buckets are not in ascending order") }
        return found
    }

    /// Finds the packed bucket before the one with this bound. It is borrowed until the next write.
    private func packedBucket(
        before bound: UInt64
    ) throws(StorageFailure) -> (bound: UInt64, bucket: PackedBucket)? {
        try packedBucket(from: bound, [MDB_SET, MDB_PREV])
    }

    /// Finds the packed bucket to which these cursor moves lead. The first move starts at `hash`. Returns `nil` when a
    /// move finds nothing.
    private func packedBucket(
        from hash: UInt64, _ moves: [MDB_cursor_op]
    ) throws(StorageFailure) -> (bound: UInt64, bucket: PackedBucket)? {
        try transaction.withCursor(environment.packed) { cursor throws(StorageFailure) in
            var hash = hash
            var key = MDB_val()
            var value = MDB_val()
            let code = withUnsafeMutableBytes(of: &hash) { bytes in
                key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
                return moves.reduce(MDB_SUCCESS) { $0 == MDB_SUCCESS ? mdb_cursor_get(cursor, &key, &value, $1) : $0 }
            }
            if code == MDB_NOTFOUND { return nil }
            try check(code, "reading a bucket")
            guard key.mv_size == 8, let bound = key.mv_data?.loadUnaligned(as: UInt64.self) else {
                throw .damaged("a bucket's key is damaged")
            }
            let opened = try environment.packed.open(
                UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size),
                at: UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size))
            return (bound, try PackedBucket(checking: opened.contents))
        }
    }

    /// Buckets get the version of the mutation that is being applied.
    private var version: UInt64 { totals.sequence + 1 }

    private func putPacked(bound: UInt64, _ value: [UInt8]) throws(StorageFailure) {
        // A record's offset in the bucket's directory has two bytes. Hashes are keyed, so nobody can make so many of
        // them equal.
        guard value.count <= UInt16.max else { throw .damaged("a bucket has outgrown its directory") }
        try transaction.put(
            environment.packed, withUnsafeBytes(of: bound) { Array($0) }, value, version: version)
    }

    /// Writes the record of `identifier` and replaces its present one; `nil` removes that.
    private func put(_ record: [UInt8]?, of identifier: CollaborationIdentifier) throws(StorageFailure) {
        let hash = hash(of: identifier)
        let added = record.map { PackedBucket.value(ofRecord: $0, tag: UInt32(truncatingIfNeeded: hash)) }
        guard let (bound, bucket) = try packedBucket(atOrAfter: hash) else {
            if let added { try putPacked(bound: .max, added) }
            return
        }
        let present = try find(identifier, hash, in: bucket)
        let place = if let present { present } else { try insertionPlace(of: identifier, hash, in: bucket) }
        precondition(hash <= bound, "a record is written to a bucket that ends before it")
        precondition(record != nil || present != nil, "a record that is not there is removed")
        let before = (bucket, 0..<place)
        let after = (bucket, (present == nil ? place : place + 1)..<bucket.count)
        let value =
            try added?.withRawBytes { added throws(StorageFailure) in
                PackedBucket.value(of: [before, (try PackedBucket(added), 0..<1), after])
            } ?? PackedBucket.value(of: [before, after])
        try value.withRawBytes { bytes throws(StorageFailure) in
            let changed = try PackedBucket(bytes)
            if changed.count == 0 {
                try transaction.delete(environment.packed, withUnsafeBytes(of: bound) { Array($0) })
            } else if value.count > PackedBucket.byteCountMax {
                try spread(changed, bound: bound)
            } else if value.count >= bucket.bytes.count {
                try putPacked(bound: bound, value)
            } else if try !merge(changed, bound: bound) {
                try putPacked(bound: bound, value)
            }
        }
    }

    /// Writes a bucket that has become smaller and one of its neighbours as one bucket. Returns false, and writes
    /// nothing, unless both together fill at most three quarters of a page: a fuller one would soon be split again.
    private func merge(_ shrunk: PackedBucket, bound: UInt64) throws(StorageFailure) -> Bool {
        let bytesMax = PackedBucket.byteCountMax * 3 / 4
        let left = bytesMax - shrunk.bytes.count
        if bound < .max, let after = try packedBucket(atOrAfter: bound + 1), after.bucket.bytes.count <= left {
            return try write([(bound, shrunk), after], pages: 1, bytesMax: bytesMax)
        }
        guard let before = try packedBucket(before: bound), before.bucket.bytes.count <= left else { return false }
        return try write([before, (bound, shrunk)], pages: 1, bytesMax: bytesMax)
    }

    /// Finds the place for a new record. Records are in the order of their hashes, and records with equal hashes in the
    /// order of their identifiers.
    private func insertionPlace(
        of identifier: CollaborationIdentifier, _ hash: UInt64, in bucket: PackedBucket
    ) throws(StorageFailure) -> Int {
        for index in 0..<bucket.count {
            let other = try bucket.record(index).identifier
            let otherHash = environment.nameHash.hash(other)
            if otherHash > hash || (otherHash == hash && identifier.utf8.lexicographicallyPrecedes(other)) {
                return index
            }
        }
        return bucket.count
    }

    /// Writes a bucket that has outgrown its page. If a neighbour's page has room, the records of both are divided
    /// evenly between the two pages. Otherwise two pages are split into three. So pages are about four fifths full in
    /// the long run. Halving full pages would leave them two thirds full (Knuth, The Art of Computer Programming,
    /// 6.2.4, B*-trees).
    private func spread(_ outgrown: PackedBucket, bound: UInt64) throws(StorageFailure) {
        var pairs: [(bytes: Int, buckets: [(bound: UInt64, bucket: PackedBucket)])] = []
        if bound < .max, let after = try packedBucket(atOrAfter: bound + 1) {
            pairs.append((outgrown.bytes.count + after.bucket.bytes.count, [(bound, outgrown), after]))
        }
        if let before = try packedBucket(before: bound) {
            pairs.append((before.bucket.bytes.count + outgrown.bytes.count, [before, (bound, outgrown)]))
        }
        pairs.sort { $0.bytes < $1.bytes }
        // A neighbour that is nearly full would soon be split again.
        if let emptier = pairs.first, emptier.bytes <= 2 * PackedBucket.byteCountMax * 7 / 8,
            try write(emptier.buckets, pages: 2, bytesMax: PackedBucket.byteCountMax)
        {
            return
        }
        if let fuller = pairs.last, fuller.bytes <= 3 * PackedBucket.byteCountMax,
            try write(fuller.buckets, pages: 3, bytesMax: PackedBucket.byteCountMax)
        {
            return
        }
        if try write([(bound, outgrown)], pages: 2, bytesMax: .max) { return }
        // All hashes are equal, so the bucket can't be split: it grows.
        try putPacked(bound: bound, Array(outgrown.bytes))
    }

    /// Replaces neighbouring buckets with `pages` buckets of about equal size that hold the same records. Returns
    /// false, and writes nothing, when a new bucket would have more than `bytesMax` bytes, or when equal hashes leave
    /// no place for a bound.
    private func write(
        _ buckets: [(bound: UInt64, bucket: PackedBucket)], pages: Int, bytesMax: Int
    ) throws(StorageFailure) -> Bool {
        try PackedBucket.value(of: buckets.map { ($0.bucket, 0..<$0.bucket.count) }).withRawBytes {
            bytes throws(StorageFailure) in
            let all = try PackedBucket(bytes)
            var hashes: [UInt64] = []
            for index in 0..<all.count { hashes.append(environment.nameHash.hash(try all.record(index).identifier)) }
            var edges = [0]
            for page in 1..<pages {
                let aim = all.start(0) + (bytes.count - all.start(0)) * page / pages
                let places = hashes.indices.filter { $0 > edges[page - 1] && hashes[$0 - 1] != hashes[$0] }
                guard let cut = places.min(by: { abs(all.start($0) - aim) < abs(all.start($1) - aim) }) else {
                    return false
                }
                edges.append(cut)
            }
            edges.append(all.count)
            precondition(
                zip(edges, edges.dropFirst()).allSatisfy { $0 < $1 }, "a page has no record, or one of another page")
            let pieces = zip(edges, edges.dropFirst()).map { PackedBucket.value(of: [(all, $0..<$1)]) }
            guard pieces.allSatisfy({ $0.count <= bytesMax }) else { return false }
            // The bound of every new bucket but the last is the hash of its last record.
            for (bound, _) in buckets.dropLast() {
                try transaction.delete(environment.packed, withUnsafeBytes(of: bound) { Array($0) })
            }
            let ends = edges.dropFirst().dropLast().map { hashes[$0 - 1] } + buckets.suffix(1).map(\.bound)
            precondition(ends.count == pages && pieces.count == pages, "there is not one bound for each page")
            precondition((hashes.last ?? 0) <= (ends.last ?? .max), "a record's hash is above the last bound")
            assert(zip(ends, ends.dropFirst()).allSatisfy { $0 < $1 }, "the pages' bounds are not in ascending order")
            for (end, piece) in zip(ends, pieces) { try putPacked(bound: end, piece) }
            return true
        }
    }

    // MARK: Buckets of large sets

    private func lastKey(_ identifier: CollaborationIdentifier) -> [UInt8] {
        identifier.utf8 + CollectionOfOne(BucketKey.last)
    }

    private func boundedKey(_ identifier: CollaborationIdentifier, _ bound: UInt64) -> [UInt8] {
        identifier.utf8 + CollectionOfOne(BucketKey.bounded) + bigEndianBytes(bound)
    }

    private mutating func writeBucket(key: [UInt8], _ roots: ArraySlice<Digest>) throws(StorageFailure) {
        value.removeAll(keepingCapacity: true)
        assert(PackedRoots.areAscending(roots), "a bucket's roots are not in ascending order")
        roots.withUnsafeBytes { value.append(contentsOf: $0) }
        try transaction.put(environment.large, key, value, version: version)
    }

    /// A bucket, copied out of the map.
    private struct Bucket {
        let key: [UInt8]
        /// The bound; `nil` for the last bucket.
        let bound: UInt64?
        let roots: [Digest]
    }

    /// Finds the first bucket at or behind `key`, which must be a bucket key of this collaboration.
    private func bucket(
        of identifier: CollaborationIdentifier, atOrAfter key: [UInt8]
    ) throws(StorageFailure) -> Bucket {
        try transaction.withCursor(environment.large) { cursor throws(StorageFailure) in
            var found = MDB_val()
            var value = MDB_val()
            let code = withMDBValue(key) { wanted in
                found = wanted.pointee
                return mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE)
            }
            try check(code, "reading a bucket")
            let foundKey = Array(UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size))
            let name = identifier.utf8
            guard foundKey.count > name.count, foundKey.starts(with: name) else {
                throw .damaged("a collaboration's last bucket is missing")
            }
            guard !foundKey.lexicographicallyPrecedes(key) else {
                throw .damaged("the buckets are not in ascending order")
            }
            let opened = try foundKey.withRawBytes { foundKey throws(StorageFailure) in
                try environment.large.open(
                    UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size), at: foundKey)
            }
            let packed = PackedRoots(opened.contents)
            let isLast = foundKey[name.count] == BucketKey.last
            let bound = isLast ? nil : foundKey.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
            let roots = (0..<packed.count).map { packed[$0] }
            assert(PackedRoots.areAscending(roots), "a bucket's roots are not in ascending order")
            assert(
                bound.map { bound in roots.last.map { $0.prefix <= bound } ?? true } ?? true,
                "a bucket holds a root behind its bound")
            return Bucket(key: foundKey, bound: bound, roots: roots)
        }
    }

    /// Adds or removes `roots` (ascending; repeats allowed). Returns how many were added or removed.
    private mutating func edit(
        _ identifier: CollaborationIdentifier, _ present: CopiedSet, _ roots: [Digest], adding: Bool
    ) throws(StorageFailure) -> UInt64 {
        assert(zip(roots, roots.dropFirst()).allSatisfy { $0 <= $1 }, "the roots of an edit are not sorted")
        if let packed = present.roots {
            let edited = adding ? merge(packed, roots[...]) : subtract(packed, roots[...])
            precondition(edited.count <= packed.count + roots.count, "more roots came than were added")
            guard edited.count != packed.count else { return 0 }
            let isPacked = edited.count <= Applier.packedRootsMax
            if !isPacked {
                try replace(Bucket(key: lastKey(identifier), bound: nil, roots: []), with: edited, of: identifier)
            }
            try put(
                PackedRecord.encode(
                    identifier, present.policy, rootCount: UInt32(edited.count), roots: isPacked ? edited : nil),
                of: identifier)
            return UInt64(abs(edited.count - packed.count))
        }
        let changed = try editBuckets(of: identifier, roots, adding: adding)
        precondition(changed <= roots.count, "more roots were changed than were given")
        if changed > 0 {
            guard adding || changed <= present.rootCount else {
                throw .damaged("a collaboration's record counts fewer roots than its buckets hold")
            }
            let count = adding ? UInt64(present.rootCount) + changed : UInt64(present.rootCount) - changed
            precondition(count <= UInt32.max, "a set has more roots than its record can count")
            try put(
                PackedRecord.encode(identifier, present.policy, rootCount: UInt32(count), roots: nil), of: identifier)
        }
        return changed
    }

    /// The error that refuses to add roots (ascending), or `nil`. Roots with the same first eight bytes stay in one
    /// bucket, which would grow with them. It reads each bucket once more, because a refusal writes nothing.
    ///
    /// `present`: the collaboration before; `nil` when there is none.
    private func refusal(
        ofAdding roots: [Digest], to identifier: CollaborationIdentifier, _ present: CopiedSet?
    ) throws(StorageFailure) -> ServiceError? {
        guard UInt64(present?.rootCount ?? 0) + UInt64(roots.count) <= UInt32.max else {
            return ServiceError(.limitExceeded, detail: .max, "a collaboration has at most \(UInt32.max) root hashes")
        }
        var next = roots.startIndex
        var read: Bucket?
        while next < roots.endIndex {
            let prefix = roots[next].prefix
            let end = roots[next...].firstIndex { $0.prefix != prefix } ?? roots.endIndex
            defer { next = end }
            if let present, present.roots == nil, read.map({ $0.bound.map { $0 < prefix } ?? false }) ?? true {
                read = try bucket(of: identifier, atOrAfter: boundedKey(identifier, prefix))
            }
            let others = read?.roots ?? present?.roots ?? []
            let count = others.reduce(0) { $1.prefix == prefix ? $0 + 1 : $0 }
            guard count + end - next > Limits.rootsPerPrefixMax else { continue }
            // Some of them may be there already, or be given twice.
            guard merge(others.filter { $0.prefix == prefix }, roots[next..<end]).count <= Limits.rootsPerPrefixMax
            else {
                return ServiceError(
                    .limitExceeded, detail: UInt32(Limits.rootsPerPrefixMax),
                    "a collaboration has at most \(Limits.rootsPerPrefixMax) root hashes with one 8-byte prefix")
            }
        }
        return nil
    }

    private mutating func editBuckets(
        of identifier: CollaborationIdentifier, _ roots: [Digest], adding: Bool
    ) throws(StorageFailure) -> UInt64 {
        var changed: UInt64 = 0
        var next = roots.startIndex
        while next < roots.endIndex {
            let bucket = try bucket(of: identifier, atOrAfter: boundedKey(identifier, roots[next].prefix))
            var end = roots.endIndex
            if let bound = bucket.bound {
                end = next
                while end < roots.endIndex, roots[end].prefix <= bound { end += 1 }
            }
            let edited =
                adding
                ? merge(bucket.roots, roots[next..<end]) : subtract(bucket.roots, roots[next..<end])
            if edited.count != bucket.roots.count {
                changed += UInt64(abs(edited.count - bucket.roots.count))
                try replace(bucket, with: edited, of: identifier)
            }
            precondition(end > next, "a bucket takes none of the roots that belong to it")
            next = end
        }
        return changed
    }

    /// Writes `roots` in place of those in `bucket`. Splits the bucket when there are too many, and merges it with the
    /// next one when there are few.
    private mutating func replace(
        _ bucket: Bucket, with roots: [Digest], of identifier: CollaborationIdentifier
    ) throws(StorageFailure) {
        if bucket.bound != nil, roots.count <= Applier.bucketRootsFew {
            let next = try self.bucket(of: identifier, atOrAfter: bucket.key + [0])
            if roots.isEmpty || roots.count + next.roots.count <= Applier.bucketRootsMax * 3 / 4 {
                try transaction.delete(environment.large, bucket.key)
                if !roots.isEmpty { try writeBucket(key: next.key, roots[...] + next.roots[...]) }
                return
            }
        }
        var rest = roots[...]
        while rest.count > Applier.bucketRootsMax {
            // Pieces of equal size leave room to grow. A full bucket would be split again by the next root.
            let pieces = rest.count / (Applier.bucketRootsMax * 3 / 4) + 1
            guard let cut = boundary(in: rest, near: rest.startIndex + (rest.count + pieces - 1) / pieces) else {
                break
            }
            precondition(cut > rest.startIndex && cut < rest.endIndex, "a bucket is split at its end")
            try writeBucket(key: boundedKey(identifier, rest[cut - 1].prefix), rest[..<cut])
            rest = rest[cut...]
        }
        precondition(bucket.bound == nil || !rest.isEmpty, "an empty bucket stays, although it has a bound")
        try writeBucket(key: bucket.key, rest)
    }

    /// Finds the position nearest to `middle` at which a bound can stand, because the root there has another prefix
    /// than the root before. Returns `nil` when all prefixes are equal, as those of more roots than
    /// `Limits.rootsPerPrefixMax` are not.
    private func boundary(in roots: ArraySlice<Digest>, near middle: Int) -> Int? {
        for distance in 0..<roots.count {
            for position in [middle + distance, middle - distance]
            where position > roots.startIndex && position < roots.endIndex
                && roots[position - 1].prefix != roots[position].prefix
            {
                return position
            }
        }
        return nil
    }

    private func merge(_ present: [Digest], _ added: ArraySlice<Digest>) -> [Digest] {
        var merged: [Digest] = []
        merged.reserveCapacity(present.count + added.count)
        var index = 0
        for root in added {
            while index < present.count, present[index] < root {
                merged.append(present[index])
                index += 1
            }
            if merged.last == root || (index < present.count && present[index] == root) { continue }
            merged.append(root)
        }
        merged.append(contentsOf: present[index...])
        assert(PackedRoots.areAscending(merged), "merged roots are not in ascending order")
        precondition(merged.count >= present.count, "a root was lost while others were added")
        return merged
    }

    private func subtract(_ present: [Digest], _ removed: ArraySlice<Digest>) -> [Digest] {
        var left: [Digest] = []
        left.reserveCapacity(present.count)
        var next = removed.startIndex
        for root in present {
            while next < removed.endIndex, removed[next] < root { next += 1 }
            if next < removed.endIndex, removed[next] == root { continue }
            left.append(root)
        }
        precondition(left.count <= present.count, "a root was added while others were removed")
        return left
    }

    /// Deletes every bucket of the collaboration from `large`. Throws `damaged` when it has more than `countMax`.
    private func dropBuckets(of identifier: CollaborationIdentifier, countMax: Int) throws(StorageFailure) {
        let name = identifier.utf8
        try transaction.withCursor(environment.large) { cursor throws(StorageFailure) in
            for _ in 0..<countMax {
                var found = MDB_val()
                var value = MDB_val()
                let code = withMDBValue(name + CollectionOfOne(BucketKey.bounded)) { wanted in
                    found = wanted.pointee
                    return mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE)
                }
                try check(code, "dropping a collaboration")
                let key = UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size)
                guard key.count > name.count, key.starts(with: name) else {
                    throw .damaged("a collaboration's last bucket is missing")
                }
                let isLast = key[name.count] == BucketKey.last
                try transaction.delete(environment.large, at: cursor)
                if isLast { return }
            }
            throw .damaged("a collaboration has more buckets than roots")
        }
    }
}
