import Core

/// How many pages the commit of a mutation takes, estimated from above before the mutation is applied.
///
/// LMDB never overwrites a page that a reader may see: it copies the page, and the old one can be used again after the
/// next commit. So also a mutation that makes nothing larger needs room.
struct PageNeed: Equatable {
    /// Pages that are copied. The old ones become free by the same commit.
    var copied = 0
    /// Pages that come in addition.
    var fresh = 0
    /// Pages of values that are longer than a leaf holds. Those of one value must be neighbours.
    var run = 0

    static func + (left: PageNeed, right: PageNeed) -> PageNeed {
        PageNeed(copied: left.copied + right.copied, fresh: left.fresh + right.fresh, run: left.run + right.run)
    }

    static func - (left: PageNeed, right: PageNeed) -> PageNeed {
        PageNeed(copied: left.copied - right.copied, fresh: left.fresh - right.fresh, run: left.run - right.run)
    }

    /// What each commit needs besides its mutations: for the totals, the roots of the trees, the list of free pages,
    /// and the records by which the change log becomes shorter. `mutations`: how many it carries.
    static func ofCommit(_ trees: StorageTrees, mutations: Int) -> PageNeed {
        let trimmed = Applier.trimmedRecordsMax(mutations: mutations)
        return PageNeed(
            copied: 16 + trees.mutations.copied(by: trimmed) + trees.log.depth + trees.log.leaves / 8, fresh: 8)
    }

    init(copied: Int = 0, fresh: Int = 0, run: Int = 0) {
        (self.copied, self.fresh, self.run) = (copied, fresh, run)
    }

    init(_ change: Change, _ trees: StorageTrees) {
        self = PageNeed.ofRecord(PageNeed.logBytes(change), trees)
        switch change {
        case .createCollaboration, .dropCollaboration:
            // Packed buckets are merged with their neighbours. The buckets of a dropped large set are deleted in order,
            // so that each page is free again before the next one is copied.
            self = self + PageNeed(copied: 3 * trees.packed.depth + 3 * trees.large.depth, fresh: 6)
        case .addRoots(_, let roots): self = self + PageNeed.ofRoots(roots.count, isAdding: true, trees)
        case .removeRoots(_, let roots): self = self + PageNeed.ofRoots(roots.count, isAdding: false, trees)
        case .edit(let edit):
            if edit.collaboration != nil {
                self = self + PageNeed.ofRoots(edit.addedRoots.count, isAdding: true, trees)
                self = self + PageNeed.ofRoots(edit.removedRoots.count, isAdding: false, trees)
            }
            let written = edit.records.filter { !$0.isCheck }
            // A leaf that becomes nearly empty is merged with a neighbour.
            let keys = written.count + written.count { $0.value == nil } + 4 * edit.removedRanges.count
            let bytes = written.reduce(0) { $0 + $1.key.count + ($1.value?.count ?? 0) + 32 + SealedValue.sealBytes }
            self =
                self
                + PageNeed(
                    copied: trees.records.copied(by: keys), fresh: written.isEmpty ? 0 : 2 + bytes / 2048,
                    run: written.reduce(0) { $0 + PageNeed.run(of: SealedValue.sealBytes + ($1.value?.count ?? 0)) })
        }
    }

    /// That of an addition of so many root hashes.
    static func ofAddition(_ count: Int, _ trees: StorageTrees) -> PageNeed {
        ofRecord(fixedLogBytes + count * Digest.byteCount, trees) + ofRoots(count, isAdding: true, trees)
    }

    /// That of a change's record in the change log, of so many bytes, and of its identifier.
    private static func ofRecord(_ bytes: Int, _ trees: StorageTrees) -> PageNeed {
        PageNeed(copied: trees.log.depth + trees.mutations.depth, fresh: 2, run: run(of: bytes))
    }

    /// For root hashes that may be anywhere in a set. The bucket of each is copied. When roots are added, up to half of
    /// the pages with these buckets are split: the buckets of a set that grows evenly become full at the same time.
    private static func ofRoots(_ count: Int, isAdding: Bool, _ trees: StorageTrees) -> PageNeed {
        guard count > 0 else { return PageNeed() }
        // A bucket that has become small is merged with the next one.
        let buckets = isAdding ? count : 2 * count
        return PageNeed(
            copied: trees.large.copied(by: buckets) + 3 * trees.packed.depth,
            fresh: isAdding ? min(count, trees.large.leaves) / 2 + count / 28 + 4 : 4)
    }

    /// Whether a mutation writes a record that needs neighbouring pages.
    static func hasLongRecord(_ change: Change) -> Bool {
        guard case .edit(let edit) = change else { return false }
        return edit.records.contains { run(of: SealedValue.sealBytes + ($0.value?.count ?? 0)) > 1 }
    }

    /// Whether the log's record of a mutation needs neighbouring pages.
    static func hasLongLogRecord(_ change: Change) -> Bool { run(of: logBytes(change)) > 1 }

    private static func logBytes(_ change: Change) -> Int {
        switch change {
        case .createCollaboration, .dropCollaboration: fixedLogBytes
        case .addRoots(_, let roots), .removeRoots(_, let roots): fixedLogBytes + roots.count * Digest.byteCount
        case .edit(let edit): fixedLogBytes + edit.weight
        }
    }

    /// What each record of the log takes besides what its change carries.
    private static let fixedLogBytes = SealedValue.sealBytes + LogRecord.headerBytes + Limits.collaborationBytesMax

    /// The pages of a value that does not fit into a leaf of 4 KiB. Larger pages need fewer.
    private static func run(of bytes: Int) -> Int { bytes > 1900 ? (bytes + 64) / 4096 + 1 : 0 }
}
