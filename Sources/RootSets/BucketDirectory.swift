import CLMDB
import Core

/// Bounds and addresses of the buckets in one version of the sets, in one flat array. With it, a look-up reaches its
/// bucket in two memory accesses; without it, it descends the B-tree. A directory covers either all packed buckets or
/// the buckets of one large collaboration. The bounds of packed buckets are hashes of names, those of a large
/// collaboration are the first eight bytes of roots. Both are uniformly distributed.
///
/// Every bucket in a directory was found intact when the directory was built, so look-ups check none.
///
/// A directory is valid only for snapshots of the same version of the sets. A later commit may overwrite the pages, but
/// only after the last read transaction of such a snapshot has ended.
///
/// Sendable without the compiler's proof: nothing changes after `init`.
final class BucketDirectory: @unchecked Sendable {
    /// An entry has sixteen bytes, so that none crosses the end of a cache line.
    private struct Entry {
        var bound: UInt64
        /// The value's address in the low 48 bits, and its size in the high 16.
        var place: UInt64

        var bytes: UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(
                start: UnsafeRawPointer(bitPattern: UInt(place & 0xffff_ffff_ffff)), count: Int(place >> 48))
        }
    }

    let version: SetsVersion
    private let count: Int
    private let entries: ScratchBuffer<Entry>
    /// For each value of a number's top bits: the first bucket that can hold such a number.
    private let starts: ScratchBuffer<UInt32>
    private let startShift: UInt64

    /// Builds the directory of at most 2^30 buckets. Traps unless their bounds ascend. Returns `nil` when an address
    /// needs more than 48 bits or a value has more than 65,535 bytes.
    init?(_ buckets: [(bound: UInt64, value: UnsafeRawBufferPointer)], version: SetsVersion) {
        var capacity = 1
        var bits: UInt64 = 0
        while capacity < 2 * buckets.count, bits < 31 { (capacity, bits) = (2 * capacity, bits + 1) }
        precondition(buckets.count <= 1 << 30, "there are too many buckets for a directory")
        self.version = version
        count = buckets.count
        // A look-up may prefetch the entry behind the last one.
        entries = ScratchBuffer(repeating: Entry(bound: 0, place: 0), count: buckets.count + 1)
        starts = ScratchBuffer(repeating: 0, count: capacity)
        startShift = 64 - bits
        var filled = 0
        var isRepresentable = true
        for (index, bucket) in buckets.enumerated() {
            precondition(index == 0 || buckets[index - 1].bound < bucket.bound, "buckets are not in ascending order")
            let address = UInt64(UInt(bitPattern: bucket.value.baseAddress))
            isRepresentable = isRepresentable && address >> 48 == 0 && bucket.value.count < 1 << 16
            entries[index] = Entry(
                bound: bucket.bound, place: address | UInt64(truncatingIfNeeded: bucket.value.count) << 48)
            let last = bits == 0 ? 0 : Int(bucket.bound >> (64 - bits))
            while filled <= last {
                starts[filled] = UInt32(index)
                filled += 1
            }
        }
        while filled < capacity {
            starts[filled] = UInt32(buckets.count)
            filled += 1
        }
        assert(filled == capacity, "a number's top bits have no first bucket")
        if !isRepresentable { return nil }
    }

    @inline(__always)
    private func start(_ number: UInt64) -> Int { startShift == 64 ? 0 : Int(number >> startShift) }

    /// Prefetches the memory that the first step of a look-up reads.
    @inline(__always)
    func prefetchStart(_ number: UInt64) { lmdb_prefetch(starts.baseAddress + start(number)) }

    /// Returns the first bucket to compare, and prefetches its entry.
    @inline(__always)
    func prefetchEntry(_ number: UInt64) -> Int {
        let first = Int(starts[start(number)])
        lmdb_prefetch(entries.baseAddress + first)
        return first
    }

    /// Finds the first bucket, from `first` on, whose bound is not below `number`. Does not read the bucket's bytes.
    @inline(__always)
    func bucket(_ number: UInt64, from first: Int) -> UnsafeRawBufferPointer? {
        index(of: number, from: first).map { entries[$0].bytes }
    }

    @inline(__always)
    private func index(of number: UInt64, from first: Int) -> Int? {
        var index = first
        assert(first == 0 || entries[first - 1].bound < number, "a look-up starts behind its bucket")
        while index < count, entries[index].bound < number { index += 1 }
        return index < count ? index : nil
    }

    /// Finds the bucket of a large collaboration that holds roots with this prefix, and the approximate position of the
    /// root in it. The estimate works because roots are uniformly distributed. Does not read the bucket's bytes.
    @inline(__always)
    func neighbourhood(of prefix: UInt64) -> (roots: PackedRoots, position: Int)? {
        guard let index = index(of: prefix, from: Int(starts[start(prefix)])) else { return nil }
        let roots = PackedRoots(entries[index].bytes)
        let least = index > 0 ? entries[index - 1].bound : 0
        let share = Double(prefix &- least) / Double(max(1, entries[index].bound &- least))
        return (roots, min(Int(share * Double(roots.count)), max(0, roots.count - 1)))
    }
}

/// Keeps directories of the newest version of the sets. When that version has seen half as many look-ups as there are
/// buckets, a directory is built, on another thread than the readers'. So no directories are built for sets that change
/// all the time. Commits that write only records leave the directories valid.
final class BucketDirectories: Sendable {
    /// The buckets that a directory covers.
    enum Subject: Hashable, Sendable {
        case packed
        /// A large collaboration, by its identifier.
        case large([UInt8])
    }

    private enum Slot {
        case building
        case built(BucketDirectory)
    }

    private struct State {
        /// The newest snapshot in which anything was looked up: the number of the transaction that committed it.
        var snapshot = 0
        var version = SetsVersion.initial
        /// How often the directories were dropped.
        var drops = 0
        var slots: [Subject: Slot] = [:]
        /// How often what has no slot was looked up, of `slotsMax` subjects at most. So what is looked up now and then
        /// keeps no directory from what is looked up often.
        var lookups: [Subject: Int] = [:]

        /// Counts look-ups of what has no slot. Returns all of them, as far as they are known.
        mutating func count(_ subject: Subject, _ more: Int) -> Int {
            if lookups.count == BucketDirectories.slotsMax, lookups[subject] == nil {
                let most = lookups.sorted { $0.value > $1.value }.prefix(BucketDirectories.slotsMax / 2)
                lookups = Dictionary(uniqueKeysWithValues: most.map { ($0.key, $0.value) })
            }
            lookups[subject, default: 0] += more
            return lookups[subject, default: 0]
        }
    }

    private let surroundings: StorageSurroundings
    private let state = Lock(State())
    /// The most large collaborations with a directory.
    private static let slotsMax = 256

    init(_ surroundings: StorageSurroundings) {
        self.surroundings = surroundings
    }

    /// Returns the directory of the subject for the transaction's snapshot; `nil` if there is none yet.
    ///
    /// `lookups`: how many look-ups the caller makes now. `buckets`: roughly how many buckets the subject has.
    func directory(
        of subject: Subject, for transaction: ReadTransaction, in environment: StorageEnvironment, lookups: Int,
        buckets: () -> Int
    ) throws(StorageFailure) -> BucketDirectory? {
        let snapshot = mdb_txn_id(transaction.handle)
        typealias Found = (directory: BucketDirectory?, due: (version: SetsVersion, drops: Int)?)
        let found = try state.withLock { state throws(StorageFailure) -> Found in
            guard snapshot >= state.snapshot else { return (nil, nil) }
            if snapshot > state.snapshot {
                let version = try transaction.setsVersion()
                if version != state.version { (state.version, state.slots, state.lookups) = (version, [:], [:]) }
                state.snapshot = snapshot
            }
            switch state.slots[subject] {
            case .built(let directory): return (directory, nil)
            case .building: return (nil, nil)
            case nil: break
            }
            guard state.slots.count < BucketDirectories.slotsMax else { return (nil, nil) }
            precondition(lookups >= 0, "the number of look-ups is negative")
            let seen = state.count(subject, lookups)
            guard seen >= surroundings.directoryLookupsMin, seen >= buckets() / 2 else { return (nil, nil) }
            state.lookups[subject] = nil
            state.slots[subject] = .building
            return (nil, (state.version, state.drops))
        }
        if let due = found.due {
            surroundings.inBackground { [self] in
                // After a failure there is no directory, and look-ups check each bucket. After as many look-ups it is
                // tried again.
                let built = attempt(subject, environment)
                state.withLock { state in
                    guard (state.version, state.drops) == due else { return }
                    guard case .building = state.slots[subject] else {
                        preconditionFailure("a directory was built that was not requested")
                    }
                    state.slots[subject] = built.flatMap { $0.version == due.version ? .built($0) : nil }
                }
            }
        }
        return found.directory
    }

    /// Drops all directories: a bucket that they may have is damaged. New ones are built of what is intact.
    func drop() {
        state.withLock { state in
            (state.slots, state.lookups) = ([:], [:])
            state.drops += 1
        }
    }

    private func attempt(_ subject: Subject, _ environment: StorageEnvironment) -> BucketDirectory? {
        do throws(StorageFailure) {
            return try build(subject, environment)
        } catch {
            // Zeros in the place of a page that can't be read are no damage.
            if environment.trust.fault == nil { environment.health.note(error) }
            return nil
        }
    }

    private func build(_ subject: Subject, _ environment: StorageEnvironment) throws(StorageFailure) -> BucketDirectory?
    {
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        let buckets =
            switch subject {
            case .packed: try transaction.packedBuckets(in: environment)
            case .large(let identifier): try largeBuckets(of: identifier, transaction, environment)
            }
        return BucketDirectory(buckets, version: try transaction.setsVersion())
    }

    private func largeBuckets(
        of identifier: [UInt8], _ transaction: ReadTransaction, _ environment: StorageEnvironment
    ) throws(StorageFailure) -> [(bound: UInt64, value: UnsafeRawBufferPointer)] {
        var buckets: [(bound: UInt64, value: UnsafeRawBufferPointer)] = []
        try identifier.withRawBytes { name throws(StorageFailure) in
            try transaction.visitBuckets(of: name, from: 0, in: environment) { bound, value throws(StorageFailure) in
                try buckets.append(bound: bound, value)
                return true
            }
        }
        return buckets
    }
}

extension ReadTransaction {
    /// Reads all packed buckets, bounds ascending, and checks them. Their contents are borrowed while the transaction
    /// lasts.
    func packedBuckets(
        in environment: StorageEnvironment
    ) throws(StorageFailure) -> [(bound: UInt64, value: UnsafeRawBufferPointer)] {
        var buckets: [(bound: UInt64, value: UnsafeRawBufferPointer)] = []
        var key = MDB_val()
        var value = MDB_val()
        var code = mdb_cursor_get(packed, &key, &value, MDB_FIRST)
        while code == MDB_SUCCESS {
            guard key.mv_size == 8, let bound = key.mv_data?.loadUnaligned(as: UInt64.self) else {
                throw .damaged("a bucket's key is damaged")
            }
            lmdb_prefetch(value.mv_data)
            try buckets.append(
                bound: bound, UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
            code = mdb_cursor_get(packed, &key, &value, MDB_NEXT)
        }
        if code != MDB_NOTFOUND { try check(code, "reading the buckets") }
        for index in buckets.indices {
            if index + 16 < buckets.count { lmdb_prefetch(buckets[index + 16].value.baseAddress) }
            let bytes = buckets[index].value
            buckets[index].value = try withUnsafeBytes(of: buckets[index].bound) { key throws(StorageFailure) in
                try environment.checkedBuckets.contents(of: bytes, at: key, in: environment.packed)
            }
        }
        return buckets
    }

    /// Calls `body` with the bound and the checked contents of each bucket of a large collaboration until `body`
    /// returns false. Begins with the bucket that holds roots with this prefix and goes on in order. The last bucket
    /// has the bound `.max`. The bytes are valid while the transaction lasts.
    ///
    /// Throws what `body` throws, and `damaged` when there is no last bucket.
    func visitBuckets(
        of identifier: UnsafeRawBufferPointer, from prefix: UInt64, in environment: StorageEnvironment,
        _ body: (_ bound: UInt64, _ value: UnsafeRawBufferPointer) throws(StorageFailure) -> Bool
    ) throws(StorageFailure) {
        try environment.large.checkTrust()
        let key = BucketKeyBuffer(identifier, bound: prefix)
        var found = MDB_val()
        var value = MDB_val()
        var code = key.lend { wanted in
            found = wanted.pointee
            return mdb_cursor_get(large, &found, &value, MDB_SET_RANGE)
        }
        var last: UInt64?
        while code == MDB_SUCCESS, key.isOfSameCollaboration(found) {
            let isLast = key.isLast(found)
            let foundKey = UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size)
            let bound = isLast ? .max : foundKey.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
            // Also ends a walk that a damaged tree would lead in a circle.
            if let last, last >= bound, !isLast { throw .damaged("the buckets are not in ascending order") }
            last = bound
            let contents = try environment.checkedBuckets.contents(
                of: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size), at: foundKey,
                in: environment.large)
            guard try body(bound, contents), !isLast else { return }
            code = mdb_cursor_get(large, &found, &value, MDB_NEXT)
        }
        if code != MDB_SUCCESS, code != MDB_NOTFOUND { try check(code, "reading the buckets") }
        throw .damaged("a collaboration's last bucket is missing")
    }
}

extension [(bound: UInt64, value: UnsafeRawBufferPointer)] {
    /// Appends a bucket. Throws `damaged` when its bound is not above the one before.
    fileprivate mutating func append(bound: UInt64, _ value: UnsafeRawBufferPointer) throws(StorageFailure) {
        if let last, last.bound >= bound { throw .damaged("the buckets are not in ascending order") }
        append((bound, value))
    }
}
