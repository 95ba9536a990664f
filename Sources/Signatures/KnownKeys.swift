import CKernels
import Core
import Dispatch
import Foundation
import Synchronization

/// Tables of keys that had a proof granted more than once, which make their next signatures three times cheaper
/// to verify.
///
/// A cache of sets with `ways` places each: a key's hash, under a secret of this object, names its set. A key is
/// offered when a proof of it was granted; the second offer gets it a table, built beside the verifying threads,
/// in a place that was not used lately. So a key costs memory only after a participant has used it twice, and
/// nobody who is not one can put anything here.
///
/// Each set is guarded by one of a few locks, held for a look at sixteen tags; no worker waits long for another. A
/// table is overwritten only when no reader that might have got its address is still inside its batch.
///
/// Sendable without the compiler's proof: entries are touched under their set's lock only; tables are written by
/// the builder alone, after the wait for readers.
final class KnownKeys: @unchecked Sendable {
    static let ways = 16
    private static let lockCount = 64
    /// Memory below which there is no room for a single set.
    static let bytesMin = ways * SignatureKernel.knownKeyBytes

    /// A key's own bytes: the form byte of its X9.63 point, then x, then y where it is there.
    struct Key: Hashable {
        var form: UInt8 = 0
        var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)

        fileprivate init() {}

        /// Of an X9.63 point of 33 or 65 bytes; `nil` for anything else.
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

        /// The X9.63 point.
        var point: [UInt8] {
            withUnsafeBytes(of: words) { [form] + $0.prefix(form == 4 ? 64 : 32) }
        }
    }

    /// What a look-up reads of a set: two cache lines.
    private struct Set {
        /// Of the keys that are ready; 0 for a place without one.
        var tags = InlineArray<16, UInt32>(repeating: 0)
        /// Whether a place was used since the hand last came by.
        var isUsed = InlineArray<16, Bool>(repeating: false)
        /// The place that is looked at next when one is needed.
        var hand: UInt8 = 0
        /// Fills two lines.
        private var rest = InlineArray<47, UInt8>(repeating: 0)
    }

    /// A thread that uses tables: between `begin` and `end` no table that it was given is overwritten.
    final class Reader: Sendable {
        /// Odd inside a batch.
        fileprivate let turns = Atomic<UInt64>(0)

        func begin() { turns.add(1, ordering: .sequentiallyConsistent) }
        func end() { turns.add(1, ordering: .releasing) }
    }

    private let kernel: SignatureKernel
    private let setCount: Int
    private let tables: UnsafeMutableRawPointer
    private let sets: UnsafeMutablePointer<Set>
    private let keys: UnsafeMutablePointer<Key>
    /// Places whose tables are being built.
    private let reserved: UnsafeMutablePointer<Bool>
    /// Not in an array of objects, whose every use would count references.
    private let locks: UnsafeMutablePointer<Mutex<Void>>
    private let secret: (UInt64, UInt64, UInt64, UInt64)
    /// Tags of keys that were offered once, in rows by hash, the newest of a row first: a new one pushes the oldest
    /// out. (With one place for each hash, two keys that share it and come in turn would never be remembered.)
    private let offered: UnsafeMutablePointer<UInt32>
    private static let offeredCount = 1 << 16
    private static let offeredPerRow = 8
    private let readers = Mutex<[Reader]>([])
    private let pending = Mutex(Pending())
    private let builder = DispatchQueue(label: "rootgate known keys", qos: .utility)
    private let readyCount = Atomic<Int>(0)
    private let hitCount = Atomic<UInt64>(0)

    /// Keys that wait for their tables: in order, and to see whether one waits already.
    private struct Pending {
        var keys: [Key] = []
        var members: Swift.Set<Key> = []
    }

    /// `bytesMax`: at least `bytesMin`. The memory is taken as keys come.
    init(_ kernel: SignatureKernel, bytesMax: Int) {
        self.kernel = kernel
        setCount = bytesMax / KnownKeys.bytesMin
        let places = setCount * KnownKeys.ways
        tables = .allocate(byteCount: places * SignatureKernel.knownKeyBytes, alignment: 4096)
        sets = UnsafeMutableRawPointer.allocate(byteCount: setCount * MemoryLayout<Set>.stride, alignment: 128)
            .bindMemory(to: Set.self, capacity: setCount)
        sets.initialize(repeating: Set(), count: setCount)
        keys = .allocate(capacity: places)
        keys.initialize(repeating: Key(), count: places)
        reserved = .allocate(capacity: places)
        reserved.initialize(repeating: false, count: places)
        // Rows within cache lines.
        offered =
            UnsafeMutableRawPointer
            .allocate(byteCount: KnownKeys.offeredCount * MemoryLayout<UInt32>.stride, alignment: 64)
            .bindMemory(to: UInt32.self, capacity: KnownKeys.offeredCount)
        offered.initialize(repeating: 0, count: KnownKeys.offeredCount)
        locks = .allocate(capacity: KnownKeys.lockCount)
        for index in 0..<KnownKeys.lockCount { (locks + index).initialize(to: Mutex(())) }
        var generator = SystemRandomNumberGenerator()
        secret = (generator.next(), generator.next(), generator.next() | 1, generator.next() | 1)
    }

    deinit {
        // The elements of all others are trivial.
        locks.deinitialize(count: KnownKeys.lockCount)
        locks.deallocate()
        tables.deallocate()
        sets.deallocate()
        keys.deallocate()
        reserved.deallocate()
        offered.deallocate()
    }

    /// Keys with tables.
    var count: Int { readyCount.load(ordering: .relaxed) }
    var isEmpty: Bool { count == 0 }
    /// Look-ups that found a table.
    var hits: UInt64 { hitCount.load(ordering: .relaxed) }

    func makeReader() -> Reader {
        let reader = Reader()
        readers.withLock { $0.append(reader) }
        return reader
    }

    // MARK: Looking up

    /// A keyed hash of the x coordinate of an X9.63 point; y adds nothing, since only two keys share an x.
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
        locks[set % KnownKeys.lockCount].withLock { _ in body() }
    }

    private func table(_ place: Int) -> UnsafeMutablePointer<UInt64> {
        (tables + place * SignatureKernel.knownKeyBytes).assumingMemoryBound(to: UInt64.self)
    }

    /// Writes the table of every check's key, or `nil` where it has none; for use until the reader's `end`.
    ///
    /// Takes each step for all checks before the next, so that waits for memory overlap. `hashes`, `tables`: as
    /// long as `checks`. Points are X9.63 points.
    func find(
        _ checks: UnsafeBufferPointer<SignatureCheck>, hashes: UnsafeMutablePointer<UInt64>,
        tables found: UnsafeMutablePointer<UnsafePointer<UInt64>?>
    ) {
        for index in checks.indices {
            guard let point = checks[index].point.baseAddress else { continue }
            hashes[index] = hash(ofX: point + 1)
            let set = UnsafeRawPointer(sets + set(hashes[index]))
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
            rg_prefetch(keys + place)
            rg_prefetch(UnsafeRawPointer(keys + place) + 64)
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

    /// The place of a key that is ready, under its set's lock.
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

    /// Proofs by these keys were granted. `points`: X9.63 points; `hashes`: as long, to work in.
    ///
    /// Takes each step for all before the next, as `find` does.
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

    /// Has the table of a key built that was offered more than once, unless it is there.
    private func request(_ point: UnsafeRawBufferPointer, _ hash: UInt64) {
        let set = set(hash)
        guard let key = Key(point), withLock(of: set, { find(key, tag(hash), in: set) == nil }) else { return }
        let begins = pending.withLock { pending -> Bool in
            guard pending.keys.count < Limits.knownKeysQueuedMax, pending.members.insert(key).inserted else {
                return false
            }
            pending.keys.append(key)
            return pending.keys.count == 1
        }
        // The first of a group waits a little for others: a build serves many keys for the price of one.
        if begins {
            builder.asyncAfter(deadline: .now() + .milliseconds(5)) { [weak self] in self?.buildPending() }
        }
    }

    /// The row that a hash is remembered in: one of those of its set's lock.
    private func offeredRow(_ hash: UInt64) -> UnsafeMutablePointer<UInt32> {
        let rows = KnownKeys.offeredCount / KnownKeys.offeredPerRow / KnownKeys.lockCount
        let lock = set(hash) % KnownKeys.lockCount
        return offered + (lock * rows + Int(tag(hash) >> 1) % rows) * KnownKeys.offeredPerRow
    }

    /// Whether a key with this hash was offered before; remembers it if not. Under its set's lock.
    private func isOfferedAgain(_ hash: UInt64) -> Bool {
        let (row, tag) = (offeredRow(hash), tag(hash))
        for place in 0..<KnownKeys.offeredPerRow where row[place] == tag { return true }
        for place in (1..<KnownKeys.offeredPerRow).reversed() { row[place] = row[place - 1] }
        row[0] = tag
        return false
    }

    /// Builds tables until no key waits.
    private func buildPending() {
        let workspace = UnsafeMutableRawPointer.allocate(byteCount: kernel.workspaceBytes, alignment: 64)
        defer { workspace.deallocate() }
        while true {
            let group = pending.withLock { pending -> [Key] in
                // The group stays in `pending` while it is built, so that nobody begins another one.
                Array(pending.keys.prefix(SignatureKernel.buildMax))
            }
            let missing = group.filter { !isReady($0) }
            if !missing.isEmpty { build(missing, workspace) }
            let isDone = pending.withLock { pending -> Bool in
                pending.keys.removeFirst(group.count)
                pending.members.subtract(group)
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
        let places = keys.map { reserve($0) }
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
                reserved[place] = false
                guard isBuilt else { return }
                sets[set].tags[way] = tag(hash(of: key))
                sets[set].isUsed[way] = true
            }
        }
        if isBuilt { readyCount.add(keys.count, ordering: .relaxed) }
    }

    /// Takes a place that was not used lately for a key, away from whoever had it.
    private func reserve(_ key: Key) -> Int {
        let set = set(hash(of: key))
        return withLock(of: set) {
            // Each place gets a second chance; a place that is empty needs none, one that was reserved a moment
            // ago is not given away again. No group has more keys than a set has places.
            var way = Int(sets[set].hand)
            for _ in 0..<3 * KnownKeys.ways {
                way = (way + 1) % KnownKeys.ways
                guard !reserved[set * KnownKeys.ways + way] else { continue }
                if sets[set].tags[way] == 0 || !sets[set].isUsed[way] { break }
                sets[set].isUsed[way] = false
            }
            sets[set].hand = UInt8(way)
            let place = set * KnownKeys.ways + way
            if sets[set].tags[way] != 0 { readyCount.subtract(1, ordering: .relaxed) }
            sets[set].tags[way] = 0
            reserved[place] = true
            self.keys[place] = key
            return place
        }
    }

    /// Returns when every reader that may have got an address before has left its batch.
    private func waitForReaders() {
        let readers = readers.withLock { $0 }
        for reader in readers {
            let turn = reader.turns.load(ordering: .sequentiallyConsistent)
            guard turn % 2 == 1 else { continue }
            while reader.turns.load(ordering: .sequentiallyConsistent) == turn { usleep(20) }
        }
    }
}
