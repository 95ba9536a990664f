import CKernels
import Core
import Dispatch
import Foundation
import Synchronization

/// Tables of known keys: keys whose proofs were granted more than once. A table makes the verification of the key's
/// next signatures three times cheaper.
///
/// It is a set-associative cache. A hash of the key, under a secret of this object, selects one of the sets. Each set
/// has `ways` places. When a proof is granted, its key is offered. After the second offer, a dispatch queue of this
/// object builds the key's table, in a place that was not used lately. So a key costs memory only after a participant
/// has used it twice, and nobody but a participant can put a key into the cache.
///
/// A few locks guard the sets, many sets each. A lock is held while sixteen tags are compared, so no worker waits long
/// for another. A table is overwritten only after every reader that may have its address has ended its batch.
///
/// Sendable without the compiler's proof: entries are read and written under their set's lock only. Only the builder
/// writes tables, and only after it has waited for the readers.
final class KnownKeys: @unchecked Sendable {
    static let ways = 16
    private static let lockCount = 64
    /// Memory for a single set. With less there is no room for a table.
    static func bytesMin(_ kernel: SignatureKernel) -> Int { ways * kernel.knownKeyBytes }

    /// A key's bytes: the form byte of its X9.63 point, then x, then y if the point is uncompressed.
    struct Key: Hashable {
        var form: UInt8 = 0
        var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)

        fileprivate init() {}

        /// Reads an X9.63 point of 33 or 65 bytes; `nil` for anything else.
        init?(_ point: UnsafeRawBufferPointer) {
            guard point.count == 33 || point.count == 65 else { return nil }
            form = point[0]
            withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: point[1...])) }
        }

        static func == (a: Key, b: Key) -> Bool {
            a.form == b.form
                && (a.words.0 ^ b.words.0) | (a.words.1 ^ b.words.1) | (a.words.2 ^ b.words.2) | (a.words.3 ^ b.words.3)
                    | (a.words.4 ^ b.words.4) | (a.words.5 ^ b.words.5) | (a.words.6 ^ b.words.6)
                    | (a.words.7 ^ b.words.7) == 0
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(form)
            hasher.combine(words.0)
            hasher.combine(words.1)
        }

        /// The key as an X9.63 point.
        var point: [UInt8] {
            withUnsafeBytes(of: words) { [form] + $0.prefix(form == 4 ? 64 : 32) }
        }
    }

    /// The part of a set that a look-up reads: two cache lines.
    private struct Set {
        /// The tags of keys whose tables are ready; 0 for an empty place.
        var tags = InlineArray<16, UInt32>(repeating: 0)
        /// Whether a place was used since the hand last passed it.
        var isUsed = InlineArray<16, Bool>(repeating: false)
        /// The place behind which the search for a free place starts (the hand of the clock algorithm).
        var hand: UInt8 = 0
        /// Padding to two cache lines.
        private var rest = InlineArray<47, UInt8>(repeating: 0)
    }

    /// A thread that uses tables. No table that it got between `begin` and `end` is overwritten before `end`.
    final class Reader: Sendable {
        /// Odd while the thread is inside a batch.
        fileprivate let turns = Atomic<UInt64>(0)

        /// Begins a batch. Traps when the batch before has not ended.
        func begin() {
            let turn = turns.add(1, ordering: .sequentiallyConsistent).newValue
            precondition(turn % 2 == 1, "a reader begins a batch inside another")
        }

        /// Ends a batch. Traps when none has begun.
        func end() {
            let turn = turns.add(1, ordering: .releasing).newValue
            precondition(turn % 2 == 0, "a reader ends a batch that it did not begin")
        }
    }

    /// Locks that guard many sets each. An array of objects would count references at each use.
    private struct Locks: ~Copyable {
        private let locks: UnsafeMutablePointer<Lock<Void>>

        init() {
            locks = .allocate(capacity: KnownKeys.lockCount)
            for index in 0..<KnownKeys.lockCount { (locks + index).initialize(to: Lock(())) }
        }

        deinit {
            locks.deinitialize(count: KnownKeys.lockCount)
            locks.deallocate()
        }

        @inline(__always)
        func withLock<R>(of set: Int, _ body: () -> R) -> R {
            locks[set % KnownKeys.lockCount].withLock { _ in body() }
        }
    }

    private let kernel: SignatureKernel
    private let setCount: Int
    /// Bytes of one table.
    private let tableBytes: Int
    private let tables: ScratchBuffer<UInt8>
    private let sets: ScratchBuffer<Set>
    private let keys: ScratchBuffer<Key>
    /// Places whose tables are being built.
    private let reserved: ScratchBuffer<Bool>
    private let locks = Locks()
    private let secret: (UInt64, UInt64, UInt64, UInt64)
    /// Tags of keys that were offered once. The hash selects a row. The newest tag of a row comes first, and a new tag
    /// replaces the oldest. (With one place for each hash, two keys of the same hash that are offered in turn would
    /// never be remembered.)
    private let offered: ScratchBuffer<UInt32>
    private static let offeredCount = 1 << 16
    private static let offeredPerRow = 8
    private let readers = Lock<[Reader]>([])
    private let pending = Lock(Pending())
    private let builder = DispatchQueue(label: "rootgate known keys", qos: .utility)
    private let readyCount = Atomic<Int>(0)
    private let hitCount = Atomic<UInt64>(0)

    /// Keys that wait for their tables: `keys` in order, `members` to find one quickly.
    private struct Pending {
        var keys: [Key] = []
        var members: Swift.Set<Key> = []
    }

    /// `bytesMax`: at least `bytesMin`. The tables' memory is committed as keys get tables.
    init(_ kernel: SignatureKernel, bytesMax: Int) {
        precondition(bytesMax >= KnownKeys.bytesMin(kernel), "there is no room for one set")
        precondition(MemoryLayout<Set>.stride == 128, "a set does not fill two cache lines")
        precondition(SignatureKernel.buildMax <= KnownKeys.ways, "a group of keys may need more places than a set has")
        self.kernel = kernel
        setCount = bytesMax / KnownKeys.bytesMin(kernel)
        tableBytes = kernel.knownKeyBytes
        let places = setCount * KnownKeys.ways
        tables = ScratchBuffer(uninitializedCount: places * tableBytes, alignment: 4096)
        sets = ScratchBuffer(repeating: Set(), count: setCount, alignment: 128)
        keys = ScratchBuffer(repeating: Key(), count: places)
        reserved = ScratchBuffer(repeating: false, count: places)
        // Rows are aligned, so that each is inside one cache line.
        offered = ScratchBuffer(repeating: 0, count: KnownKeys.offeredCount, alignment: 64)
        var generator = SystemRandomNumberGenerator()
        secret = (generator.next(), generator.next(), generator.next() | 1, generator.next() | 1)
    }

    /// Number of keys with tables.
    var count: Int { readyCount.load(ordering: .relaxed) }
    var isEmpty: Bool { count == 0 }
    /// Number of look-ups that found a table.
    var hits: UInt64 { hitCount.load(ordering: .relaxed) }

    func makeReader() -> Reader {
        let reader = Reader()
        readers.withLock { $0.append(reader) }
        return reader
    }

    // MARK: Looking up

    /// Hashes the x coordinate of an X9.63 point under the secret. y would add nothing, since only two keys share an x.
    private func hash(ofX x: UnsafeRawPointer) -> UInt64 {
        func word(_ index: Int) -> UInt64 { x.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self) }
        func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
            let product = a.multipliedFullWidth(by: b)
            return product.high ^ product.low
        }
        return fold(
            fold(word(0) ^ secret.0, word(1) ^ secret.1) ^ secret.2,
            fold(word(2) ^ secret.1, word(3) ^ secret.0) ^ secret.3)
    }

    private func hash(of key: Key) -> UInt64 {
        withUnsafeBytes(of: key.words) { words in words.baseAddress.map { hash(ofX: $0) } ?? 0 }
    }

    private func tag(_ hash: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: hash) | 1 }

    private func set(_ hash: UInt64) -> Int { Int(((hash >> 32) * UInt64(setCount)) >> 32) }

    private func withLock<R>(of set: Int, _ body: () -> R) -> R {
        assert(set >= 0 && set < setCount, "there is no such set")
        return locks.withLock(of: set, body)
    }

    private func table(_ place: Int) -> UnsafeMutablePointer<UInt64> {
        assert(place >= 0 && place < keys.count, "there is no such place")
        return UnsafeMutableRawPointer(tables.baseAddress + place * tableBytes)
            .assumingMemoryBound(to: UInt64.self)
    }

    /// Writes the address of the table of each check's key, or `nil` if the key has none. The tables may be read until
    /// the reader's `end`.
    ///
    /// Each step is done for all checks before the next, so that waits for memory overlap. `hashes` and `tables` are as
    /// long as `checks`. The points are X9.63 points.
    func find(
        _ checks: UnsafeBufferPointer<SignatureCheck>, hashes: UnsafeMutablePointer<UInt64>,
        tables found: UnsafeMutablePointer<UnsafePointer<UInt64>?>
    ) {
        for index in checks.indices {
            guard let point = checks[index].point.baseAddress else { continue }
            hashes[index] = hash(ofX: point + 1)
            let set = UnsafeRawPointer(sets.baseAddress + set(hashes[index]))
            rg_prefetch(set)
            rg_prefetch(set + 64)
        }
        for index in checks.indices {
            let hash = hashes[index]
            let (set, tag) = (set(hash), tag(hash))
            found[index] = nil
            let place = withLock(of: set) { () -> Int? in
                for way in 0..<KnownKeys.ways where sets[set].tags[way] == tag { return set * KnownKeys.ways + way }
                return nil
            }
            guard let place else { continue }
            found[index] = UnsafePointer(table(place))
            rg_prefetch(keys.baseAddress + place)
            rg_prefetch(UnsafeRawPointer(keys.baseAddress + place) + 64)
        }
        var hits: UInt64 = 0
        for index in checks.indices where found[index] != nil {
            found[index] = nil
            guard let key = Key(checks[index].point) else { continue }
            let hash = hashes[index]
            let set = set(hash)
            let place = withLock(of: set) { find(key, tag(hash), in: set) }
            guard let place else { continue }
            found[index] = UnsafePointer(table(place))
            hits += 1
        }
        if hits > 0 { hitCount.add(hits, ordering: .relaxed) }
    }

    /// Finds the place of a key whose table is ready. Called under its set's lock.
    private func find(_ key: Key, _ tag: UInt32, in set: Int) -> Int? {
        for way in 0..<KnownKeys.ways where sets[set].tags[way] == tag {
            let place = set * KnownKeys.ways + way
            guard keys[place] == key else { continue }
            sets[set].isUsed[way] = true
            return place
        }
        return nil
    }

    // MARK: Admitting

    /// Remembers that proofs by these keys were granted, and queues keys that were offered before. `points`: X9.63
    /// points. `hashes`: scratch memory of the same length.
    ///
    /// Each step is done for all keys before the next, as in `find`.
    func offer(_ points: UnsafeBufferPointer<UnsafeRawBufferPointer>, hashes: UnsafeMutablePointer<UInt64>) {
        for index in points.indices {
            guard let point = points[index].baseAddress else { continue }
            hashes[index] = hash(ofX: point + 1)
            rg_prefetch(offeredRow(hashes[index]))
        }
        for index in points.indices {
            let hash = hashes[index]
            if withLock(of: set(hash), { isOfferedAgain(hash) }) { request(points[index], hash) }
        }
    }

    /// Queues a key for the builder, unless it has a table or waits already.
    private func request(_ point: UnsafeRawBufferPointer, _ hash: UInt64) {
        let set = set(hash)
        guard let key = Key(point), withLock(of: set, { find(key, tag(hash), in: set) == nil }) else { return }
        let begins = pending.withLock { pending -> Bool in
            guard pending.keys.count < Limits.knownKeysQueuedMax, pending.members.insert(key).inserted else {
                return false
            }
            pending.keys.append(key)
            precondition(pending.keys.count == pending.members.count, "a key waits twice for its table")
            return pending.keys.count == 1
        }
        // Building many tables takes as long as building one. So the first key of a group waits 5 ms for others.
        if begins {
            builder.asyncAfter(deadline: .now() + .milliseconds(5)) { [weak self] in self?.buildPending() }
        }
    }

    /// Finds the row that remembers a hash. The lock of the hash's set also guards this row.
    private func offeredRow(_ hash: UInt64) -> UnsafeMutablePointer<UInt32> {
        let rows = KnownKeys.offeredCount / KnownKeys.offeredPerRow / KnownKeys.lockCount
        let lock = set(hash) % KnownKeys.lockCount
        let row = lock * rows + Int(tag(hash) >> 1) % rows
        assert((row + 1) * KnownKeys.offeredPerRow <= offered.count, "there is no such row")
        return offered.baseAddress + row * KnownKeys.offeredPerRow
    }

    /// Whether a key with this hash was offered before. If not, it is remembered. Called under its set's lock.
    private func isOfferedAgain(_ hash: UInt64) -> Bool {
        let (row, tag) = (offeredRow(hash), tag(hash))
        for place in 0..<KnownKeys.offeredPerRow where row[place] == tag { return true }
        for place in (1..<KnownKeys.offeredPerRow).reversed() { row[place] = row[place - 1] }
        row[0] = tag
        return false
    }

    /// Builds tables until no key waits.
    private func buildPending() {
        dispatchPrecondition(condition: .onQueue(builder))
        let workspace = ScratchBuffer<UInt8>(uninitializedCount: kernel.workspaceBytes, alignment: RG_P256_ALIGNMENT)
        while true {
            let group = pending.withLock { pending -> [Key] in
                // The group stays in `pending` while it is built, so that no other builder is started.
                Array(pending.keys.prefix(SignatureKernel.buildMax))
            }
            let missing = group.filter { !isReady($0) }
            if !missing.isEmpty { build(missing, workspace.baseAddress) }
            let isDone = pending.withLock { pending -> Bool in
                precondition(pending.keys.starts(with: group), "another builder took the keys that were being built")
                pending.keys.removeFirst(group.count)
                pending.members.subtract(group)
                precondition(pending.keys.count == pending.members.count, "a key waits twice for its table")
                return pending.keys.isEmpty
            }
            if isDone { return }
        }
    }

    private func isReady(_ key: Key) -> Bool {
        let hash = hash(of: key)
        let set = set(hash)
        return withLock(of: set) { find(key, tag(hash), in: set) != nil }
    }

    private func build(_ keys: [Key], _ workspace: UnsafeMutableRawPointer) {
        precondition((1...SignatureKernel.buildMax).contains(keys.count), "a group has too many keys")
        let places = keys.map { reserve($0) }
        // From here on no look-up finds these places.
        waitForReaders()
        let points = keys.map(\.point)
        let isBuilt = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 65 * keys.count) { bytes in
            var addresses: [UnsafePointer<UInt8>?] = []
            for (index, point) in points.enumerated() {
                _ = UnsafeMutableBufferPointer(rebasing: bytes[(65 * index)...]).initialize(from: point)
                addresses.append(bytes.baseAddress.map { UnsafePointer($0) + 65 * index })
            }
            let targets = places.map { Optional(table($0)) }
            return kernel.build(addresses, targets, count: keys.count, workspace: workspace)
        }
        for (key, place) in zip(keys, places) {
            let (set, way) = place.quotientAndRemainder(dividingBy: KnownKeys.ways)
            withLock(of: set) {
                precondition(reserved[place] && sets[set].tags[way] == 0, "a place was taken while its table was built")
                reserved[place] = false
                guard isBuilt else { return }
                sets[set].tags[way] = tag(hash(of: key))
                sets[set].isUsed[way] = true
            }
        }
        guard isBuilt else { return }
        let ready = readyCount.add(keys.count, ordering: .relaxed).newValue
        precondition(ready >= 0 && ready <= self.keys.count, "more keys are ready than there are places")
    }

    /// Reserves a place that was not used lately for `key`. The key that had the place loses its table.
    private func reserve(_ key: Key) -> Int {
        let set = set(hash(of: key))
        return withLock(of: set) {
            // The clock algorithm. A place that was used since the hand last passed it is skipped once. An empty place
            // is taken at once, a reserved place never. A group has at most as many keys as a set has places. So the
            // second round finds a place that is not reserved.
            var way = Int(sets[set].hand)
            for _ in 0..<3 * KnownKeys.ways {
                way = (way + 1) % KnownKeys.ways
                guard !reserved[set * KnownKeys.ways + way] else { continue }
                if sets[set].tags[way] == 0 || !sets[set].isUsed[way] { break }
                sets[set].isUsed[way] = false
            }
            sets[set].hand = UInt8(way)
            let place = set * KnownKeys.ways + way
            precondition(!reserved[place], "a place is reserved for two keys")
            if sets[set].tags[way] != 0 { readyCount.subtract(1, ordering: .relaxed) }
            sets[set].tags[way] = 0
            reserved[place] = true
            self.keys[place] = key
            return place
        }
    }

    /// Waits until every reader that may have got an address before has ended its batch.
    private func waitForReaders() {
        let readers = readers.withLock { $0 }
        for reader in readers {
            let turn = reader.turns.load(ordering: .sequentiallyConsistent)
            guard turn % 2 == 1 else { continue }
            while reader.turns.load(ordering: .sequentiallyConsistent) == turn { usleep(20) }
        }
    }
}
