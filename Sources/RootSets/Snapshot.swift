import CLMDB
package import Core

/// A collaboration in a snapshot. It must not be used after the call of `RootSets.read` that made the snapshot.
package struct CollaborationView: BitwiseCopyable {
    /// The policy for the signed data of proofs.
    package let policy: ProofPolicy
    /// Number of root hashes in the set.
    package let rootCount: UInt64
    /// The identifier's bytes in the map.
    fileprivate let identifier: UnsafeRawBufferPointer
    let isLarge: Bool
    /// The roots in the map; empty when the collaboration is large.
    fileprivate let roots: PackedRoots
    /// The directory of a large collaboration's buckets, if there is one. Whoever makes the view keeps the directory
    /// alive.
    var directory: Unmanaged<BucketDirectory>?

    init(_ record: PackedRecord) {
        policy = record.policy
        rootCount = UInt64(record.rootCount)
        identifier = record.identifier
        isLarge = record.isLarge
        roots = record.roots
    }
}

/// Counts over the whole storage.
package struct StorageStatistics: Sendable {
    package let lastSequence: UInt64
    package let firstSequence: UInt64
    package let collaborations: UInt64
    package let roots: UInt64
    package let logBytes: UInt64
    package let fileBytes: Int
    /// Bytes of the file's pages that hold data. The others are free for later changes.
    package let usedBytes: Int
}

/// All root sets as of one moment, read in one transaction.
///
/// Valid during a call of `RootSets.read`. Views point into the map and must not be used after that call.
package struct Snapshot: ~Copyable {
    let transaction: ReadTransaction
    let environment: StorageEnvironment

    init(_ transaction: ReadTransaction, _ environment: StorageEnvironment) {
        self.transaction = transaction
        self.environment = environment
    }

    // MARK: Membership

    /// Looks up a collaboration; `nil` when there is none, or when the bytes are no valid identifier.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func collaboration(_ identifier: UnsafeRawBufferPointer) throws(ServiceError) -> CollaborationView? {
        guard CollaborationIdentifier.isValid(identifier) else { return nil }
        do throws(StorageFailure) {
            let hash = environment.nameHash.hash(identifier)
            guard let (_, bucket) = try bucket(atOrAfter: hash), let place = try bucket.find(identifier, hash: hash)
            else { return nil }
            return CollaborationView(try bucket.record(place))
        } catch {
            throw error.asServiceError
        }
    }

    /// Returns the directory of this snapshot's packed buckets; `nil` if there is none yet. `lookups`: how many
    /// look-ups the caller makes now.
    func directory(lookups: Int) throws(StorageFailure) -> BucketDirectory? {
        // A look-up without a directory waits, or reports that.
        guard environment.trust.believes(.packed) else { return nil }
        return try environment.directories.directory(of: .packed, for: transaction, in: environment, lookups: lookups) {
            var statistics = MDB_stat()
            let code = mdb_stat(transaction.handle, environment.packed.handle, &statistics)
            return code == MDB_SUCCESS ? statistics.ms_entries : .max
        }
    }

    /// Returns the directory of a large collaboration's buckets; `nil` if there is none yet.
    func directory(of collaboration: CollaborationView, lookups: Int) throws(StorageFailure) -> BucketDirectory? {
        guard environment.trust.believes(.large) else { return nil }
        return try environment.directories.directory(
            of: .large(Array(collaboration.identifier)), for: transaction, in: environment, lookups: lookups
        ) { Int(collaboration.rootCount) / Applier.bucketRootsMax }
    }

    func hash(of identifier: UnsafeRawBufferPointer) -> UInt64 { environment.nameHash.hash(identifier) }

    /// Finds the first packed bucket whose bound is not below `hash`. Returns the bound and the contents, which were
    /// checked.
    func bucketBytes(
        atOrAfter hash: UInt64
    ) throws(StorageFailure) -> (bound: UInt64, bytes: UnsafeRawBufferPointer)? {
        try environment.packed.checkTrust()
        var hash = hash
        var value = MDB_val()
        var key = MDB_val()
        let code = withUnsafeMutableBytes(of: &hash) { bytes in
            key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
            return mdb_cursor_get(transaction.packed, &key, &value, MDB_SET_RANGE)
        }
        if code == MDB_NOTFOUND { return nil }
        try check(code, "looking up a collaboration")
        guard key.mv_size == 8, let bound = key.mv_data?.loadUnaligned(as: UInt64.self), bound >= hash else {
            throw .damaged("a bucket's key is damaged")
        }
        let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        let keyBytes = UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size)
        return (bound, try environment.checkedBuckets.contents(of: bytes, at: keyBytes, in: environment.packed))
    }

    /// Finds the first packed bucket whose bound is not below `hash`.
    private func bucket(atOrAfter hash: UInt64) throws(StorageFailure) -> (bound: UInt64, bucket: PackedBucket)? {
        guard let (bound, bytes) = try bucketBytes(atOrAfter: hash) else { return nil }
        return (bound, try PackedBucket(bytes))
    }

    /// Summarizes a collaboration; `nil` when there is none with that identifier.
    package func summary(of identifier: CollaborationIdentifier) throws(ServiceError) -> CollaborationSummary? {
        try identifier.utf8.withRawBytes { bytes throws(ServiceError) -> CollaborationSummary? in
            guard let view = try collaboration(bytes) else { return nil }
            return CollaborationSummary(identifier: identifier, policy: view.policy, rootCount: view.rootCount)
        }
    }

    /// Prefetches the memory that `contains` will read. Does nothing for a collaboration without a directory.
    package func prefetch(_ root: Digest, in collaboration: CollaborationView) {
        collaboration.directory?._withUnsafeGuaranteedRef { directory in
            guard let place = directory.neighbourhood(of: root.prefix) else { return }
            place.roots.prefetch(around: place.position)
        }
    }

    /// Whether `root` is in the set of `collaboration`. The bytes of the view's identifier must still be valid.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func contains(_ root: Digest, in collaboration: CollaborationView) throws(ServiceError) -> Bool {
        guard collaboration.isLarge else { return collaboration.roots.contains(root) }
        if let directory = collaboration.directory {
            return directory._withUnsafeGuaranteedRef { directory in
                directory.neighbourhood(of: root.prefix).map { $0.roots.contains(root, near: $0.position) } ?? false
            }
        }
        do throws(StorageFailure) {
            return try bucketRoots(of: collaboration.identifier, for: root.prefix).contains(root)
        } catch {
            throw error.asServiceError
        }
    }

    /// The roots in the bucket of a large collaboration that holds roots with this prefix.
    private func bucketRoots(
        of identifier: UnsafeRawBufferPointer, for prefix: UInt64
    ) throws(StorageFailure) -> PackedRoots {
        try environment.large.checkTrust()
        let key = BucketKeyBuffer(identifier, bound: prefix)
        var found = MDB_val()
        var value = MDB_val()
        let (code, isOurs) = key.lend { wanted in
            found = wanted.pointee
            let code = mdb_cursor_get(transaction.large, &found, &value, MDB_SET_RANGE)
            return (code, code == MDB_SUCCESS && key.isOfSameCollaboration(found))
        }
        guard code == MDB_SUCCESS, isOurs else {
            throw StorageFailure(code == MDB_SUCCESS ? MDB_CORRUPTED : code, "looking up a root hash")
        }
        return PackedRoots(
            try environment.checkedBuckets.contents(
                of: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size),
                at: UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size), in: environment.large))
    }

    /// Whether each of `roots` is in the set; `nil` when there is no such collaboration.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func test(
        _ roots: [Digest], in identifier: CollaborationIdentifier
    ) throws(ServiceError) -> [Bool]? {
        try identifier.utf8.withRawBytes { name throws(ServiceError) -> [Bool]? in
            guard let view = try collaboration(name) else { return nil }
            var answers: [Bool] = []
            answers.reserveCapacity(roots.count)
            for root in roots { answers.append(try contains(root, in: view)) }
            return answers
        }
    }

    // MARK: Listing

    /// Lists up to `limit` root hashes above `start`, ascending; `nil` when there is no such collaboration.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func roots(
        of identifier: CollaborationIdentifier, after start: Digest?, limit: Int
    ) throws(ServiceError) -> Page<Digest>? {
        try identifier.utf8.withRawBytes { name throws(ServiceError) -> Page<Digest>? in
            guard let view = try collaboration(name) else { return nil }
            return try page(of: view, after: start, limit: limit)
        }
    }

    private func page(
        of view: CollaborationView, after start: Digest?, limit: Int
    ) throws(ServiceError) -> Page<Digest> {
        var page = Page<Digest>(items: [], hasMore: false)
        guard view.isLarge else {
            page.append(view.roots, after: start, limit: limit)
            return page
        }
        do throws(StorageFailure) {
            try appendBuckets(of: view.identifier, after: start, limit: limit, to: &page)
        } catch {
            throw error.asServiceError
        }
        return page
    }

    private func appendBuckets(
        of name: UnsafeRawBufferPointer, after start: Digest?, limit: Int, to page: inout Page<Digest>
    ) throws(StorageFailure) {
        try transaction.visitBuckets(of: name, from: start?.prefix ?? 0, in: environment) { _, value in
            page.append(PackedRoots(value), after: start, limit: limit)
            return !page.hasMore
        }
    }

    /// Lists up to `limit` collaborations after `start`, which need not exist. The order is the storage's own. It does
    /// not change when other collaborations are added or removed.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func collaborations(
        after start: CollaborationIdentifier?, limit: Int
    ) throws(ServiceError) -> Page<CollaborationSummary> {
        do throws(StorageFailure) {
            return try records(after: start, limit: limit)
        } catch {
            throw error.asServiceError
        }
    }

    private func records(
        after start: CollaborationIdentifier?, limit: Int
    ) throws(StorageFailure) -> Page<CollaborationSummary> {
        var page = Page<CollaborationSummary>(items: [], hasMore: false)
        let startHash = start.map { start in start.utf8.withUnsafeBytes { environment.nameHash.hash($0) } } ?? 0
        var next: UInt64? = startHash
        while let hash = next, let (bound, bucket) = try bucket(atOrAfter: hash) {
            for index in 0..<bucket.count {
                let record = try bucket.record(index)
                guard let identifier = CollaborationIdentifier(utf8: record.identifier) else {
                    throw .damaged("a collaboration's identifier is damaged")
                }
                if let start {
                    let hash = environment.nameHash.hash(record.identifier)
                    guard hash > startHash || (hash == startHash && start < identifier) else { continue }
                }
                if page.items.count == limit {
                    page.hasMore = true
                    return page
                }
                page.items.append(
                    CollaborationSummary(
                        identifier: identifier, policy: record.policy, rootCount: UInt64(record.rootCount)))
            }
            next = bound == .max ? nil : bound + 1
        }
        return page
    }

    // MARK: The change log

    /// Lists up to `limit` log records after `sequence`, in order. A page ends early after 512 KiB.
    ///
    /// Throws `changesTrimmed` when the log no longer has all records after `sequence`, `storageDamaged` or
    /// `storageFailed`.
    package func changes(after sequence: UInt64, limit: Int) throws(ServiceError) -> Page<LoggedMutation> {
        let (page, totals): (Page<LoggedMutation>?, Totals)
        do throws(StorageFailure) {
            totals = try transaction.totals()
            page =
                sequence >= totals.firstSequence - 1
                ? try changes(after: sequence, through: totals.sequence, limit: limit) : nil
        } catch {
            throw error.asServiceError
        }
        guard let page else {
            throw ServiceError(
                .changesTrimmed,
                "the change log begins at \(totals.firstSequence): read the sets anew, "
                    + "then continue from \(totals.sequence)"
            )
        }
        return page
    }

    private func changes(
        after sequence: UInt64, through last: UInt64, limit: Int
    ) throws(StorageFailure) -> Page<LoggedMutation> {
        var page = Page<LoggedMutation>(items: [], hasMore: false)
        var bytes = 0
        var next = sequence
        var previous: UInt64?
        while next < last {
            next += 1
            if page.items.count == limit || bytes > Limits.changesPageBytesMax {
                page.hasMore = true
                break
            }
            guard let value = try transaction.value(environment.log, bigEndianBytes(next)) else {
                throw .damaged("change-log record \(next) is missing")
            }
            guard
                try previous.map({ checksum throws(StorageFailure) in
                    checksum == (try LogRecord.previous(in: value.contents))
                }) ?? true
            else { throw .damaged("change-log record \(next) does not follow the one before") }
            previous = value.checksum
            bytes += value.contents.count
            page.items.append(try LogRecord.decode(value.contents, sequence: next))
        }
        return page
    }

    // MARK: Counts

    /// Throws `storageDamaged` or `storageFailed`.
    package func statistics() throws(ServiceError) -> StorageStatistics {
        do throws(StorageFailure) {
            let totals = try transaction.totals()
            return StorageStatistics(
                lastSequence: totals.sequence, firstSequence: totals.firstSequence,
                collaborations: totals.collaborations, roots: totals.roots, logBytes: totals.logBytes,
                fileBytes: environment.fileSize, usedBytes: try environment.usedBytes(transaction.handle))
        } catch {
            throw error.asServiceError
        }
    }

    /// The sequence of the last mutation in this snapshot; 0 before the first.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func lastSequence() throws(ServiceError) -> UInt64 {
        do throws(StorageFailure) {
            return try transaction.totals().sequence
        } catch {
            throw error.asServiceError
        }
    }

    /// Finds the mutation with that identifier: its sequence, and the request that made it, if it is an edit of a
    /// request. Returns `nil` when none was applied, or when its log record was removed.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func applied(
        _ identifier: MutationIdentifier
    ) throws(ServiceError) -> (sequence: UInt64, request: RequestDigest?)? {
        do throws(StorageFailure) {
            let key = withUnsafeBytes(of: identifier.value.littleEndian) { Array($0) }
            guard let place = try transaction.value(environment.mutations, key)?.contents else { return nil }
            guard place.count == 8 else { throw .damaged("the record of mutation \(identifier) is damaged") }
            let sequence = UInt64(littleEndian: place.loadUnaligned(as: UInt64.self))
            guard let record = try transaction.value(environment.log, bigEndianBytes(sequence)) else {
                throw .damaged("change-log record \(sequence) is missing")
            }
            return (sequence, try LogRecord.request(in: record.contents))
        } catch {
            throw error.asServiceError
        }
    }
}

extension Page<Digest> {
    /// Appends those of `roots` that are above `start`, up to `limit` items in all.
    fileprivate mutating func append(_ roots: PackedRoots, after start: Digest?, limit: Int) {
        for index in 0..<roots.count {
            let root = roots[index]
            if let start, root <= start { continue }
            guard items.count < limit else {
                hasMore = true
                return
            }
            items.append(root)
        }
    }
}

/// Memory on the stack for the key of a bounded bucket in `large`.
struct BucketKeyBuffer {
    private var bytes: InlineArray<137, UInt8>
    private let nameCount: Int

    /// `identifier`: at most `Limits.collaborationBytesMax` bytes.
    init(_ identifier: UnsafeRawBufferPointer, bound: UInt64) {
        bytes = .init(repeating: 0)
        nameCount = identifier.count
        precondition(nameCount + 9 <= BucketKey.capacity && BucketKey.capacity <= 137)
        let nameCount = nameCount
        withUnsafeMutableBytes(of: &bytes) { buffer in
            buffer.copyMemory(from: identifier)
            buffer[nameCount] = BucketKey.bounded
            buffer.storeBytes(of: bound.bigEndian, toByteOffset: nameCount + 1, as: UInt64.self)
        }
    }

    func lend<R>(_ body: (UnsafeMutablePointer<MDB_val>) -> R) -> R {
        withUnsafeBytes(of: bytes) { buffer in
            withMDBValue(UnsafeRawBufferPointer(rebasing: buffer[..<(nameCount + 9)]), body)
        }
    }

    /// Whether `key` belongs to a bucket of the same collaboration.
    func isOfSameCollaboration(_ key: MDB_val) -> Bool {
        guard key.mv_size > nameCount, let start = key.mv_data else { return false }
        return withUnsafeBytes(of: bytes) { ours in
            UnsafeRawBufferPointer(start: start, count: nameCount)
                .elementsEqual(UnsafeRawBufferPointer(rebasing: ours[..<nameCount]))
                && start.load(fromByteOffset: nameCount, as: UInt8.self) <= BucketKey.last
        }
    }

    /// Whether `key`, a bucket's key of the same collaboration, belongs to its last bucket.
    func isLast(_ key: MDB_val) -> Bool {
        key.mv_data?.load(fromByteOffset: nameCount, as: UInt8.self) == BucketKey.last
    }
}
