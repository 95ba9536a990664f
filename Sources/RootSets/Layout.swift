import CLMDB
import Core

// The six databases of the environment. Integers are little-endian unless stated otherwise.
//
// `packed`: one record for each collaboration, with its policy and its number of roots. A small collaboration's record
// also holds its roots. Records with neighbouring hashes (`NameHash`) share a bucket of one page. So one look-up with
// few cache misses finds policy and set, and a root takes little more than its 32 bytes.
//
//     key    bound: the highest hash that belongs into the bucket (8 bytes, native: MDB_INTEGERKEY)
//     value  see `PackedBucket`
//
// `large`: the roots of collaborations that are too large for a packed record, in sorted buckets:
//
//     key of the last bucket      identifier 01
//     key of any other bucket     identifier 00 bound (8 bytes, big-endian)
//     value                       roots in ascending order
//
// A bucket with a bound holds the roots whose first eight bytes are <= its bound and > the bound before. The last
// bucket holds the rest. Identifiers have no control bytes. So the buckets of one collaboration are adjacent, bounds
// ascending, with the last bucket last. The first key at or after (identifier 00 prefix) is the bucket for roots with
// that prefix.
//
// `log`: the change log. Key: sequence, big-endian. Value: see `LogRecord`.
// `records`: what the layers above keep; see `Applier+Records.swift`.
// `mutations`: mutation identifier (16 bytes) -> sequence (8 bytes), for each record of the log.
// `meta`: "format" -> 4 bytes, "hash key" -> 16 bytes, "totals" -> `Totals`, "sets" -> `SetsVersion`, 8 bytes.

enum BucketKey {
    static let bounded: UInt8 = 0
    static let last: UInt8 = 1
    static let capacity = Limits.collaborationBytesMax + 9
}

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

/// The bytes of one change-log record:
/// mutation identifier (16), kind (1), identifier length (1), policy (1), zero (1), window in seconds or
/// number of roots (4), changed (8), collaboration identifier, roots.
struct LogRecord {
    static let headerBytes = 32
    static let changedOffset = 24
    /// Bytes that a record takes in addition to its value: 18 in `log`, and 34 in `mutations`, whose pages are two
    /// thirds full because its keys are random.
    static let overheadBytes: UInt64 = 68

    private enum Kind {
        static let create: UInt8 = 1
        static let drop: UInt8 = 2
        static let add: UInt8 = 3
        static let remove: UInt8 = 4
        static let edit: UInt8 = 5
    }

    /// Replaces the contents of `bytes` with the log record of `mutation`.
    static func encode(_ mutation: Mutation, changed: UInt64, into bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        var kind = Kind.drop
        var policy: UInt8 = 0
        var number: UInt32 = 0
        var roots: [Digest] = []
        switch mutation.change {
        case .createCollaboration(_, let chosen):
            kind = Kind.create
            (policy, number) = chosen.code
        case .dropCollaboration: break
        case .addRoots(_, let added):
            (kind, roots, number) = (Kind.add, added, UInt32(added.count))
        case .removeRoots(_, let removed):
            (kind, roots, number) = (Kind.remove, removed, UInt32(removed.count))
        case .edit: kind = Kind.edit
        }
        let name = mutation.change.collaboration?.utf8 ?? []
        precondition(name.count <= Limits.collaborationBytesMax, "an identifier is too long")
        withUnsafeBytes(of: mutation.identifier.value.littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(kind)
        bytes.append(UInt8(name.count))
        bytes.append(policy)
        bytes.append(0)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: changed.littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: name)
        roots.withUnsafeBytes { bytes.append(contentsOf: $0) }
        if case .edit(let edit) = mutation.change { edit.append(to: &bytes) }
    }

    /// The request that made the edit in the record; `nil` when no request did, or when it is no edit.
    static func request(in value: UnsafeRawBufferPointer) throws(StorageFailure) -> RequestDigest? {
        guard value.count >= headerBytes else { throw .damaged("a change-log record is damaged") }
        guard value[16] == Kind.edit else { return nil }
        let offset = headerBytes + Int(value[17]) + Edit.requestOffset
        guard value.count >= offset + 16 else { throw .damaged("a change-log record is damaged") }
        return RequestDigest(
            logged: UInt128(littleEndian: value.loadUnaligned(fromByteOffset: offset, as: UInt128.self)))
    }

    static func changed(in value: UnsafeRawBufferPointer) throws(StorageFailure) -> UInt64 {
        guard value.count >= headerBytes else { throw .damaged("a change-log record is damaged") }
        return UInt64(littleEndian: value.loadUnaligned(fromByteOffset: changedOffset, as: UInt64.self))
    }

    static func decode(_ value: UnsafeRawBufferPointer, sequence: UInt64) throws(StorageFailure) -> LoggedMutation {
        let damage = StorageFailure.damaged("change-log record \(sequence) is damaged")
        let changed = try changed(in: value)
        let identifier = UInt128(littleEndian: value.loadUnaligned(fromByteOffset: 0, as: UInt128.self))
        let nameEnd = headerBytes + Int(value[17])
        let number = UInt32(littleEndian: value.loadUnaligned(fromByteOffset: 20, as: UInt32.self))
        guard nameEnd <= value.count else { throw damage }
        if value[16] == Kind.edit {
            let name = UnsafeRawBufferPointer(rebasing: value[headerBytes..<nameEnd])
            let collaboration = CollaborationIdentifier(utf8: name)
            guard name.isEmpty || collaboration != nil,
                let edit = Edit(UnsafeRawBufferPointer(rebasing: value[nameEnd...]), collaboration: collaboration)
            else { throw damage }
            return LoggedMutation(
                sequence: sequence, changed: changed,
                mutation: Mutation(identifier: MutationIdentifier(identifier), .edit(edit)))
        }
        guard
            let collaboration = CollaborationIdentifier(
                utf8: UnsafeRawBufferPointer(rebasing: value[headerBytes..<nameEnd]))
        else { throw damage }
        var roots: [Digest] = []
        if value[16] == Kind.add || value[16] == Kind.remove {
            guard let base = value.baseAddress, value.count - nameEnd == Int(number) * Digest.byteCount else {
                throw damage
            }
            roots = (0..<Int(number)).map { Digest(at: base + nameEnd + $0 * Digest.byteCount) }
        }
        let change: Change
        switch value[16] {
        case Kind.create:
            guard let policy = ProofPolicy(kind: value[18], windowSeconds: number) else { throw damage }
            change = .createCollaboration(collaboration, policy)
        case Kind.drop: change = .dropCollaboration(collaboration)
        case Kind.add: change = .addRoots(collaboration, roots)
        case Kind.remove: change = .removeRoots(collaboration, roots)
        default: throw damage
        }
        return LoggedMutation(
            sequence: sequence, changed: changed,
            mutation: Mutation(identifier: MutationIdentifier(identifier), change))
    }
}

/// Ascending root hashes inside a bucket's value, borrowed from the map.
struct PackedRoots {
    let start: UnsafeRawPointer?
    let count: Int

    /// `bytes`: the number of bytes is a multiple of 32.
    init(_ bytes: UnsafeRawBufferPointer) {
        start = bytes.baseAddress
        count = bytes.count / Digest.byteCount
    }

    /// Whether each root is above the one before, which `contains` requires.
    static func areAscending(_ roots: some Collection<Digest>) -> Bool {
        zip(roots, roots.dropFirst()).allSatisfy { $0 < $1 }
    }

    subscript(index: Int) -> Digest {
        assert(index >= 0 && index < count, "there is no such root")
        guard let start else { return .zero }
        return Digest(at: start + index * Digest.byteCount)
    }

    /// Prefetches three cache lines (six roots) around a position.
    @inline(__always)
    func prefetch(around position: Int) {
        guard let start else { return }
        let middle = start + position * Digest.byteCount
        lmdb_prefetch(middle)
        lmdb_prefetch(middle + PackedRoots.lineBytes)
        if position > 1 { lmdb_prefetch(middle - PackedRoots.lineBytes) }
    }

    private static let lineBytes = 64

    /// Whether the root at `position` is below `root`, whose prefix is `prefix`.
    @inline(__always)
    private func isBelow(_ position: Int, _ root: Digest, _ prefix: UInt64) -> Bool {
        guard let address = start.map({ $0 + position * Digest.byteCount }) else { return false }
        let other = UInt64(bigEndian: address.loadUnaligned(as: UInt64.self))
        return other < prefix || (other == prefix && Digest(at: address) < root)
    }

    /// Finds the position of the first root that is not below `root`.
    func lowerBound(of root: Digest) -> Int {
        lowerBound(of: root, between: 0, and: count)
    }

    private func lowerBound(of root: Digest, between least: Int, and most: Int) -> Int {
        let prefix = root.prefix
        var low = least
        var high = most
        while low < high {
            let middle = (low + high) / 2
            if isBelow(middle, root, prefix) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Does the same, but faster when the result is near `guess`, a position from 0 to `count`: it does an exponential
    /// search from there, then a binary search.
    func lowerBound(of root: Digest, near guess: Int) -> Int {
        assert(guess >= 0 && guess <= count, "a search starts outside of the roots")
        let prefix = root.prefix
        var step = 2
        var low = guess
        var high = guess
        if guess < count, isBelow(guess, root, prefix) {
            repeat {
                low = high + 1
                high = min(high + step, count)
                step *= 2
            } while high < count && isBelow(high, root, prefix)
        } else {
            while low > 0 {
                high = low
                low = max(0, low - step)
                step *= 2
                if isBelow(low, root, prefix) { break }
            }
        }
        return lowerBound(of: root, between: low, and: high)
    }

    func contains(_ root: Digest) -> Bool {
        isAt(lowerBound(of: root), root)
    }

    func contains(_ root: Digest, near guess: Int) -> Bool {
        isAt(lowerBound(of: root, near: guess), root)
    }

    private func isAt(_ position: Int, _ root: Digest) -> Bool {
        position < count && self[position] == root
    }
}
