import CLMDB
import Core
import Dispatch
import Synchronization

/// Where every packed bucket stood in one snapshot: the tree's keys and addresses in one flat array, so that a
/// look-up takes two memory accesses to its bucket instead of a walk down the tree.
///
/// Good for that snapshot only: the next commit may use its pages again, but not before the last read
/// transaction of the snapshot has ended.
final class BucketDirectory: @unchecked Sendable {
    // Sendable without the compiler's proof: nothing changes after `init`.

    /// Sixteen bytes, so that none straddles a cache line.
    private struct Entry {
        var bound: UInt64
        /// The value's address in the low 48 bits, its size in the high 16.
        var place: UInt64
    }

    /// The transaction whose commit made the snapshot.
    let snapshot: Int
    private let count: Int
    private let entries: UnsafeMutablePointer<Entry>
    /// For each value of a hash's top bits, the first bucket that such a hash can be in.
    private let starts: UnsafeMutablePointer<UInt32>
    private let startShift: UInt64

    /// Reads the tree. Throws `storageDamaged` or `storageFailed`; `nil` when an address does not fit.
    init?(_ transaction: ReadTransaction, bucketCount: Int) throws(StorageFailure) {
        snapshot = mdb_txn_id(transaction.handle)
        var capacity = 1
        var bits: UInt64 = 0
        while capacity < 2 * bucketCount, bits < 31 { (capacity, bits) = (2 * capacity, bits + 1) }
        let entries = UnsafeMutablePointer<Entry>.allocate(capacity: bucketCount + 1)
        let starts = UnsafeMutablePointer<UInt32>.allocate(capacity: capacity)
        var count = 0
        var filled = 0
        var isRepresentable = true
        do throws(StorageFailure) {
            var key = MDB_val()
            var value = MDB_val()
            var code = mdb_cursor_get(transaction.packed, &key, &value, MDB_FIRST)
            while code == MDB_SUCCESS, count < bucketCount {
                guard key.mv_size == 8, let bound = key.mv_data?.loadUnaligned(as: UInt64.self) else {
                    throw .damaged("a bucket's key is damaged")
                }
                let address = UInt64(UInt(bitPattern: value.mv_data))
                isRepresentable = isRepresentable && address >> 48 == 0 && value.mv_size < 1 << 16
                entries[count] = Entry(bound: bound, place: address | UInt64(truncatingIfNeeded: value.mv_size) << 48)
                let last = bits == 0 ? 0 : Int(bound >> (64 - bits))
                while filled <= last {
                    starts[filled] = UInt32(count)
                    filled += 1
                }
                count += 1
                code = mdb_cursor_get(transaction.packed, &key, &value, MDB_NEXT)
            }
            if code != MDB_NOTFOUND, code != MDB_SUCCESS { try check(code, "reading the buckets") }
            isRepresentable = isRepresentable && code == MDB_NOTFOUND
        } catch {
            entries.deallocate()
            starts.deallocate()
            throw error
        }
        while filled < capacity {
            starts[filled] = UInt32(count)
            filled += 1
        }
        self.count = count
        self.entries = entries
        self.starts = starts
        startShift = 64 - bits
        if !isRepresentable { return nil }
    }

    deinit {
        entries.deallocate()
        starts.deallocate()
    }

    @inline(__always)
    private func start(_ hash: UInt64) -> Int { startShift == 64 ? 0 : Int(hash >> startShift) }

    /// Asks for the memory that the first step of a look-up reads.
    @inline(__always)
    func prefetchStart(_ hash: UInt64) { lmdb_prefetch(starts + start(hash)) }

    /// The first bucket to look at; asks for it.
    @inline(__always)
    func prefetchEntry(_ hash: UInt64) -> Int {
        let first = Int(starts[start(hash)])
        lmdb_prefetch(entries + first)
        return first
    }

    /// The bytes of the first bucket from `first` on whose bound is not below `hash`, not touched yet.
    @inline(__always)
    func bucket(_ hash: UInt64, from first: Int) -> UnsafeRawBufferPointer? {
        var index = first
        while index < count, entries[index].bound < hash { index += 1 }
        guard index < count else { return nil }
        let place = entries[index].place
        return UnsafeRawBufferPointer(
            start: UnsafeRawPointer(bitPattern: UInt(place & 0xffff_ffff_ffff)), count: Int(place >> 48))
    }
}

/// Keeps a directory of the newest snapshot, as long as snapshots live long enough to be worth one: it is built,
/// beside the readers, when a snapshot has seen half as many look-ups as there are buckets. Storage that is
/// written all the time is read without.
final class BucketDirectories: Sendable {
    private struct State {
        var directory: BucketDirectory?
        var snapshot = 0
        var lookups = 0
        var isBuilding = false
    }

    private let state = Mutex(State())
    private static let lookupsMin = 4096

    /// The directory of the transaction's snapshot, if there is one yet. `lookups`: how many will be made now.
    func directory(
        for transaction: ReadTransaction, in environment: StorageEnvironment, lookups: Int
    ) -> BucketDirectory? {
        let snapshot = mdb_txn_id(transaction.handle)
        let (directory, isDue) = state.withLock { state -> (BucketDirectory?, Bool) in
            if let directory = state.directory, directory.snapshot == snapshot { return (directory, false) }
            guard snapshot >= state.snapshot else { return (nil, false) }
            if snapshot > state.snapshot { (state.snapshot, state.lookups, state.directory) = (snapshot, 0, nil) }
            state.lookups += lookups
            guard !state.isBuilding, state.lookups >= BucketDirectories.lookupsMin else { return (nil, false) }
            var statistics = MDB_stat()
            guard mdb_stat(transaction.handle, environment.packed, &statistics) == MDB_SUCCESS,
                state.lookups >= statistics.ms_entries / 2
            else { return (nil, false) }
            state.isBuilding = true
            return (nil, true)
        }
        if isDue {
            DispatchQueue.global(qos: .utility).async { [self] in
                // A failure shows when a look-up meets it.
                let built = try? build(environment)
                state.withLock { state in
                    state.isBuilding = false
                    state.lookups = 0
                    if let built, built.snapshot >= state.snapshot { state.directory = built }
                }
            }
        }
        return directory
    }

    private func build(_ environment: StorageEnvironment) throws(StorageFailure) -> BucketDirectory? {
        let transaction = try ReadTransaction(environment)
        try transaction.renew()
        defer { transaction.reset() }
        var statistics = MDB_stat()
        try check(mdb_stat(transaction.handle, environment.packed, &statistics), "reading the buckets")
        return try BucketDirectory(transaction, bucketCount: statistics.ms_entries)
    }
}
