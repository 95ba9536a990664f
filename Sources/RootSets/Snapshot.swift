import CLMDB
package import Core

/// A collaboration as a snapshot sees it; not to be used outside the call that lent the snapshot.
package struct CollaborationView {
    /// What the signed data of a proof must be.
    package let policy: ProofPolicy
    /// Root hashes in the set.
    package let rootCount: UInt64
    /// The identifier's bytes, in the map.
    fileprivate let identifier: UnsafeRawBufferPointer
    /// The head bucket's roots, in the map.
    fileprivate let head: PackedRoots

    fileprivate var isOneBucket: Bool { rootCount == UInt64(head.count) }
}

/// Counts over the whole storage.
package struct StorageStatistics: Sendable {
    package let lastSequence: UInt64
    package let firstSequence: UInt64
    package let collaborations: UInt64
    package let roots: UInt64
    package let logBytes: UInt64
    package let fileBytes: Int
}

/// All root sets as of one moment: one read transaction, many questions.
///
/// Lent by `RootSets.read`; what it returns as views points into the map and
/// must not leave that call.
package struct Snapshot: ~Copyable {
    private let transaction: ReadTransaction
    private let environment: StorageEnvironment

    init(_ transaction: ReadTransaction, _ environment: StorageEnvironment) {
        self.transaction = transaction
        self.environment = environment
    }

    // MARK: Membership

    /// The collaboration of that identifier; `nil` when there is none, or when the bytes can't be one.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func collaboration(_ identifier: UnsafeRawBufferPointer) throws(ServiceError) -> CollaborationView? {
        guard CollaborationIdentifier.isValid(identifier) else { return nil }
        let key = BucketKeyBuffer(identifier, BucketKey.head)
        var value = MDB_val()
        let code = key.lend { key in mdb_get(transaction.handle, environment.sets, key, &value) }
        if code == MDB_NOTFOUND { return nil }
        guard code == MDB_SUCCESS else { throw StorageFailure(code, "looking up a collaboration").asServiceError }
        let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        let header: HeadHeader
        do throws(StorageFailure) {
            header = try HeadHeader(reading: bytes)
        } catch {
            throw error.asServiceError
        }
        return CollaborationView(
            policy: header.policy, rootCount: header.rootCount, identifier: identifier,
            head: PackedRoots(UnsafeRawBufferPointer(rebasing: bytes[HeadHeader.byteCount...])))
    }

    /// The collaboration of that identifier; `nil` when there is none.
    package func summary(of identifier: CollaborationIdentifier) throws(ServiceError) -> CollaborationSummary? {
        try identifier.utf8.withRawBytes { bytes throws(ServiceError) -> CollaborationSummary? in
            guard let view = try collaboration(bytes) else { return nil }
            return CollaborationSummary(identifier: identifier, policy: view.policy, rootCount: view.rootCount)
        }
    }

    /// Whether `root` is in the set of `collaboration`, whose identifier's bytes must still be there.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func contains(_ root: Digest, in collaboration: CollaborationView) throws(ServiceError) -> Bool {
        if collaboration.head.contains(root) { return true }
        if collaboration.isOneBucket { return false }
        let key = BucketKeyBuffer(collaboration.identifier, BucketKey.bounded, bound: root.prefix)
        var value = MDB_val()
        let (code, isOurs) = key.lend { wanted in
            var found = wanted.pointee
            let code = mdb_cursor_get(transaction.cursor, &found, &value, MDB_SET_RANGE)
            return (code, code == MDB_SUCCESS && key.isBounded(found))
        }
        guard code == MDB_SUCCESS else { throw StorageFailure(code, "looking up a root hash").asServiceError }
        // At the head already: it was searched above.
        guard isOurs else { return false }
        return PackedRoots(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)).contains(root)
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

    /// Up to `limit` root hashes above `start`, ascending; `nil` when there is no such collaboration.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func roots(
        of identifier: CollaborationIdentifier, after start: Digest?, limit: Int
    ) throws(ServiceError) -> Page<Digest>? {
        try identifier.utf8.withRawBytes { name throws(ServiceError) -> Page<Digest>? in
            guard try collaboration(name) != nil else { return nil }
            return try page(of: name, after: start, limit: limit)
        }
    }

    private func page(
        of name: UnsafeRawBufferPointer, after start: Digest?, limit: Int
    ) throws(ServiceError) -> Page<Digest> {
        do throws(StorageFailure) {
            return try buckets(of: name, after: start, limit: limit)
        } catch {
            throw error.asServiceError
        }
    }

    private func buckets(
        of name: UnsafeRawBufferPointer, after start: Digest?, limit: Int
    ) throws(StorageFailure) -> Page<Digest> {
        let key = BucketKeyBuffer(name, BucketKey.bounded, bound: start?.prefix ?? 0)
        var page = Page<Digest>(items: [], hasMore: false)
        var found = MDB_val()
        var value = MDB_val()
        var code = key.lend { wanted in
            found = wanted.pointee
            return mdb_cursor_get(transaction.cursor, &found, &value, MDB_SET_RANGE)
        }
        while code == MDB_SUCCESS {
            let isHead = key.isHead(found)
            guard isHead || key.isBounded(found) else { break }
            let bytes = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
            let roots = PackedRoots(
                isHead ? UnsafeRawBufferPointer(rebasing: bytes.dropFirst(HeadHeader.byteCount)) : bytes)
            for index in 0..<roots.count {
                let root = roots[index]
                if let start, root <= start { continue }
                if page.items.count == limit {
                    page.hasMore = true
                    return page
                }
                page.items.append(root)
            }
            if isHead { return page }
            code = mdb_cursor_get(transaction.cursor, &found, &value, MDB_NEXT)
        }
        if code != MDB_SUCCESS { try check(code, "listing root hashes") }
        throw .damaged("a collaboration's last bucket is missing")
    }

    /// Up to `limit` collaborations whose identifiers are above `start`, in the order of their bytes.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package func collaborations(
        after start: CollaborationIdentifier?, limit: Int
    ) throws(ServiceError) -> Page<CollaborationSummary> {
        do throws(StorageFailure) {
            return try heads(after: start, limit: limit)
        } catch {
            throw error.asServiceError
        }
    }

    private func heads(
        after start: CollaborationIdentifier?, limit: Int
    ) throws(StorageFailure) -> Page<CollaborationSummary> {
        var page = Page<CollaborationSummary>(items: [], hasMore: false)
        // Behind every bucket of `start`: no key byte after an identifier is above 1 but an identifier's own.
        var from = start.map { $0.utf8 + [BucketKey.head + 1] } ?? []
        while true {
            var found = MDB_val()
            var value = MDB_val()
            let code = from.isEmpty
                ? mdb_cursor_get(transaction.cursor, &found, &value, MDB_FIRST)
                : withMDBValue(from) { wanted in
                    found = wanted.pointee
                    return mdb_cursor_get(transaction.cursor, &found, &value, MDB_SET_RANGE)
                }
            if code == MDB_NOTFOUND { return page }
            try check(code, "listing collaborations")
            let key = UnsafeRawBufferPointer(start: found.mv_data, count: found.mv_size)
            guard let end = key.firstIndex(where: { $0 <= BucketKey.head }),
                let identifier = CollaborationIdentifier(utf8: UnsafeRawBufferPointer(rebasing: key[..<end]))
            else { throw .damaged("a bucket's key is damaged") }
            if key[end] == BucketKey.bounded {
                from = identifier.utf8 + [BucketKey.head]
                continue
            }
            if page.items.count == limit {
                page.hasMore = true
                return page
            }
            let header = try HeadHeader(reading: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
            page.items.append(
                CollaborationSummary(identifier: identifier, policy: header.policy, rootCount: header.rootCount))
            from = identifier.utf8 + [BucketKey.head + 1]
        }
    }

    // MARK: The change log

    /// Up to `limit` records behind sequence `sequence`, in order; a page ends early after 512 KiB.
    ///
    /// Throws `changesTrimmed` when records after `sequence` are gone, `storageDamaged` or `storageFailed`.
    package func changes(after sequence: UInt64, limit: Int) throws(ServiceError) -> Page<LoggedMutation> {
        let (page, totals): (Page<LoggedMutation>?, Totals)
        do throws(StorageFailure) {
            totals = try self.totals()
            page = sequence.addingReportingOverflow(1).partialValue >= totals.firstSequence
                ? try changes(after: sequence, through: totals.sequence, limit: limit) : nil
        } catch {
            throw error.asServiceError
        }
        guard let page else {
            throw ServiceError(
                .changesTrimmed,
                "the change log begins at \(totals.firstSequence): read the sets anew, then go on from \(totals.sequence)")
        }
        return page
    }

    private func changes(
        after sequence: UInt64, through last: UInt64, limit: Int
    ) throws(StorageFailure) -> Page<LoggedMutation> {
        var page = Page<LoggedMutation>(items: [], hasMore: false)
        var bytes = 0
        var next = sequence
        while next < last {
            next += 1
            if page.items.count == limit || bytes > Limits.changesPageBytesMax {
                page.hasMore = true
                break
            }
            var value = MDB_val()
            let code = withMDBValue(bigEndianBytes(next)) { key in
                mdb_get(transaction.handle, environment.log, key, &value)
            }
            try check(code, "reading change \(next)")
            bytes += value.mv_size
            page.items.append(
                try LogRecord.decode(
                    UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size), sequence: next))
        }
        return page
    }

    // MARK: Counts

    /// Throws `storageDamaged` or `storageFailed`.
    package func statistics() throws(ServiceError) -> StorageStatistics {
        do throws(StorageFailure) {
            let totals = try totals()
            return StorageStatistics(
                lastSequence: totals.sequence, firstSequence: totals.firstSequence,
                collaborations: totals.collaborations, roots: totals.roots, logBytes: totals.logBytes,
                fileBytes: environment.fileSize)
        } catch {
            throw error.asServiceError
        }
    }

    private func totals() throws(StorageFailure) -> Totals {
        var value = MDB_val()
        let code = withMDBValue(Array("totals".utf8)) { key in
            mdb_get(transaction.handle, environment.meta, key, &value)
        }
        if code == MDB_NOTFOUND { return Totals() }
        try check(code, "reading the totals")
        return try Totals(reading: UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
    }
}

func bigEndianBytes(_ number: UInt64) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
}

/// A bucket's key on the stack.
private struct BucketKeyBuffer {
    private var bytes: InlineArray<137, UInt8>
    private let count: Int
    private let nameCount: Int

    /// `identifier`: at most `Limits.collaborationBytesMax` bytes.
    init(_ identifier: UnsafeRawBufferPointer, _ kind: UInt8, bound: UInt64 = 0) {
        bytes = .init(repeating: 0)
        nameCount = identifier.count
        count = nameCount + (kind == BucketKey.head ? 1 : 9)
        precondition(count <= BucketKey.capacity && BucketKey.capacity <= 137)
        let (nameCount, count) = (nameCount, count)
        withUnsafeMutableBytes(of: &bytes) { buffer in
            buffer.copyMemory(from: identifier)
            buffer[nameCount] = kind
            if count > nameCount + 1 {
                buffer.storeBytes(of: bound.bigEndian, toByteOffset: nameCount + 1, as: UInt64.self)
            }
        }
    }

    func lend<R>(_ body: (UnsafeMutablePointer<MDB_val>) -> R) -> R {
        withUnsafeBytes(of: bytes) { buffer in
            withMDBValue(UnsafeRawBufferPointer(rebasing: buffer[..<count]), body)
        }
    }

    /// Whether `key` is a bounded bucket of the same collaboration.
    func isBounded(_ key: MDB_val) -> Bool { hasSameName(key) && kind(of: key) == BucketKey.bounded }

    /// Whether `key` is the head bucket of the same collaboration.
    func isHead(_ key: MDB_val) -> Bool { hasSameName(key) && kind(of: key) == BucketKey.head }

    private func kind(of key: MDB_val) -> UInt8 {
        UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size)[nameCount]
    }

    private func hasSameName(_ key: MDB_val) -> Bool {
        guard key.mv_size > nameCount, let start = key.mv_data else { return false }
        return withUnsafeBytes(of: bytes) { ours in
            UnsafeRawBufferPointer(start: start, count: nameCount)
                .elementsEqual(UnsafeRawBufferPointer(rebasing: ours[..<nameCount]))
        }
    }
}
