import Core

/// The pages of the trees of a storage, as of the last commit.
struct StorageTrees: Equatable {
    var packed = TreePages()
    var large = TreePages()
    var log = TreePages()
    var mutations = TreePages()
    var records = TreePages()
    /// LMDB's lists of free pages.
    var lists = TreePages()
    /// The names of the trees, and the one of the totals.
    var others = 0

    /// Pages that hold data. The two of LMDB's root pages count, too.
    var all: Int { 2 + packed.all + large.all + log.all + mutations.all + records.all + lists.all + others }

    /// What the removal of as many root hashes as a request may have needs at most, with the list of the pages that
    /// become free by it.
    var largestRemoval: Int {
        let count = Limits.rootsPerRequestMax
        let copied = large.copied(by: 2 * count) + 3 * packed.depth
        return copied + copied / 256 + count * Digest.byteCount / 4096 + 64
    }
}
