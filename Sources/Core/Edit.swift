/// Changes to one collaboration's set of root hashes and to records. They happen whole or not at all. The records
/// belong to layers above the gate, which keep them beside the sets. An edit is a pure value, like every change.
public struct Edit: Hashable, Sendable {
    /// The collaboration whose set changes; `nil` when the edit changes only records.
    public var collaboration: CollaborationIdentifier?
    /// Creates the collaboration with this policy, unless it exists.
    public var creation: ProofPolicy?
    /// Removes the collaboration and its set.
    public var dropsCollaboration = false
    /// Root hashes to add, and root hashes to remove.
    public var addedRoots: [Digest] = []
    public var removedRoots: [Digest] = []
    /// Ranges of keys whose records are removed. This happens before `records` are written.
    public var removedRanges: [RecordRange] = []
    public var records: [RecordEdit] = []
    /// The request that made the edit; `nil` when no request did.
    public var request: RequestDigest?

    public init(_ collaboration: CollaborationIdentifier? = nil) {
        self.collaboration = collaboration
    }

    /// Whether the edit makes the storage larger, however long the records are that it replaces. Such an edit is
    /// refused while the storage is full. Replacing a record does not count, so that people can always be removed; an
    /// edit that makes records longer is told by the storage (`RecordGrowth`). An edit that changes nothing does: it
    /// only makes the change log larger.
    package var needsSpace: Bool {
        creation != nil || !addedRoots.isEmpty || isEmpty
            || records.contains { $0.value != nil && $0.expectation != .present && !$0.expectation.isVersion }
    }

    /// Whether the edit removes something.
    package var removes: Bool {
        dropsCollaboration || !removedRoots.isEmpty || !removedRanges.isEmpty
            || records.contains { $0.value == nil && !$0.isCheck }
    }

    /// Whether the edit changes nothing: it is in the change log only to remember its request.
    package var isEmpty: Bool {
        creation == nil && !dropsCollaboration && addedRoots.isEmpty && removedRoots.isEmpty && removedRanges.isEmpty
            && records.allSatisfy(\.isCheck)
    }
}

/// A range of record keys, from `start` up to but not including `end`, in byte order.
public struct RecordRange: Hashable, Sendable {
    public var start: [UInt8]
    public var end: [UInt8]

    public init(_ start: [UInt8], _ end: [UInt8]) {
        self.start = start
        self.end = end
    }
}

/// One record that is written, removed or only checked.
public struct RecordEdit: Hashable, Sendable {
    /// What the storage must hold at the key. Otherwise the whole edit is refused as stale.
    public enum Expectation: Hashable, Sendable {
        case anything
        case absent
        case present
        /// A record that the mutation with this sequence wrote.
        case version(UInt64)

        var isVersion: Bool {
            if case .version = self { true } else { false }
        }
    }

    /// The record's key. If `isSequenced`, the storage appends the mutation's sequence to it (8 bytes, big-endian).
    public var key: [UInt8]
    public var isSequenced: Bool
    /// The record's new value; `nil` removes the record.
    public var value: [UInt8]?
    public var expectation: Expectation
    /// Whether the edit leaves the record as it is and only checks the expectation.
    public var isCheck = false

    public init(
        _ key: [UInt8], isSequenced: Bool = false, value: [UInt8]?, expecting expectation: Expectation = .anything
    ) {
        self.key = key
        self.isSequenced = isSequenced
        self.value = value
        self.expectation = expectation
    }

    /// Makes an entry that leaves the record as it is. The edit is refused as stale unless the expectation holds.
    public static func checking(_ key: [UInt8], expecting expectation: Expectation) -> RecordEdit {
        var record = RecordEdit(key, value: nil, expecting: expectation)
        record.isCheck = true
        return record
    }
}

/// A record as it stands in the storage.
public struct StoredRecord: Hashable, Sendable {
    public let key: [UInt8]
    /// The sequence of the mutation that wrote it.
    public let version: UInt64
    public let value: [UInt8]

    public init(key: [UInt8], version: UInt64, value: [UInt8]) {
        self.key = key
        self.version = version
        self.value = value
    }
}

extension Edit {
    /// Appends the bytes of this edit for the change log, without the collaboration's identifier:
    ///
    ///     flags (1): 1 creates, 2 drops   policy (1)  zero (2)  window (4)
    ///     roots added (4)  roots removed (4)  ranges (4)  records (4)  request (16, zeros for none)  the roots
    ///     each range: length (2), start, length (2), end
    ///     each record: expectation (1: 0 anything, 1 absent, 2 present, 3 version), flags (1: 1 sequenced, 2 has a
    ///     value, 4 stays as it is), length of the key (2), length of the value (4), version (8, else 0), key, value
    package func append(to bytes: inout [UInt8]) {
        bytes.append((creation == nil ? 0 : 1) | (dropsCollaboration ? 2 : 0))
        bytes.append(creation?.code.kind ?? 0)
        bytes.appendInteger(UInt16(0))
        bytes.appendInteger(creation?.code.windowSeconds ?? 0)
        for count in [addedRoots.count, removedRoots.count, removedRanges.count, records.count] {
            bytes.appendInteger(UInt32(count))
        }
        bytes.appendInteger(request?.value ?? 0)
        bytes.appendDigests(addedRoots)
        bytes.appendDigests(removedRoots)
        for range in removedRanges {
            for bound in [range.start, range.end] {
                bytes.appendInteger(UInt16(bound.count))
                bytes.append(contentsOf: bound)
            }
        }
        for record in records {
            let (kind, version): (UInt8, UInt64) =
                switch record.expectation {
                case .anything: (0, 0)
                case .absent: (1, 0)
                case .present: (2, 0)
                case .version(let version): (3, version)
                }
            bytes.append(kind)
            bytes.append((record.isSequenced ? 1 : 0) | (record.value == nil ? 0 : 2) | (record.isCheck ? 4 : 0))
            bytes.appendInteger(UInt16(record.key.count))
            bytes.appendInteger(UInt32(record.value?.count ?? 0))
            bytes.appendInteger(version)
            bytes.append(contentsOf: record.key)
            bytes.append(contentsOf: record.value ?? [])
        }
    }

    /// Where `append` writes the request's digest.
    package static let requestOffset = 24

    /// Reads what `append` wrote; `nil` when the bytes are something else or when more bytes follow.
    package init?(_ bytes: UnsafeRawBufferPointer, collaboration: CollaborationIdentifier?) {
        self.init(collaboration)
        var reader = ByteReader(bytes)
        guard let flags = reader.byte(), flags <= 3, let policy = reader.byte(), let zero: UInt16 = reader.integer(),
            zero == 0, let window: UInt32 = reader.integer(), let added: UInt32 = reader.integer(),
            let removed: UInt32 = reader.integer(), let ranges: UInt32 = reader.integer(),
            let count: UInt32 = reader.integer(), let request: UInt128 = reader.integer(),
            let come = reader.digests(Int(added)),
            let go = reader.digests(Int(removed))
        else { return nil }
        if flags & 1 != 0 {
            creation = ProofPolicy(kind: policy, windowSeconds: window)
            guard creation != nil else { return nil }
        } else if policy != 0 || window != 0 {
            return nil
        }
        dropsCollaboration = flags & 2 != 0
        self.request = RequestDigest(logged: request)
        (addedRoots, removedRoots) = (come, go)
        for _ in 0..<ranges {
            guard let startCount: UInt16 = reader.integer(), let start = reader.bytes(Int(startCount)),
                let endCount: UInt16 = reader.integer(), let end = reader.bytes(Int(endCount))
            else { return nil }
            removedRanges.append(RecordRange(Array(start), Array(end)))
        }
        for _ in 0..<count {
            guard let record = RecordEdit(&reader) else { return nil }
            records.append(record)
        }
        guard reader.isAtEnd else { return nil }
    }

    /// The approximate number of bytes that the edit takes in memory and in the log.
    package var weight: Int {
        records.reduce(48 + (addedRoots.count + removedRoots.count) * Digest.byteCount) {
            $0 + 16 + $1.key.count + ($1.value?.count ?? 0)
        } + removedRanges.reduce(0) { $0 + 4 + $1.start.count + $1.end.count }
    }
}

extension RecordEdit {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let kind = reader.byte(), let flags = reader.byte(), flags <= 4, let keyCount: UInt16 = reader.integer(),
            let valueCount: UInt32 = reader.integer(), let version: UInt64 = reader.integer(),
            let key = reader.bytes(Int(keyCount)), let value = reader.bytes(Int(valueCount)),
            flags & 2 != 0 || value.isEmpty, kind == 3 || version == 0
        else { return nil }
        let expectation: Expectation
        switch kind {
        case 0: expectation = .anything
        case 1: expectation = .absent
        case 2: expectation = .present
        case 3: expectation = .version(version)
        default: return nil
        }
        self.init(
            Array(key), isSequenced: flags & 1 != 0, value: flags & 2 == 0 ? nil : Array(value), expecting: expectation)
        isCheck = flags == 4
    }
}
