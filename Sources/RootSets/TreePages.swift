/// The pages of one tree of the storage, as of the last commit.
struct TreePages: Equatable {
    var leaves = 0
    var branches = 0
    /// Pages of values that are too long for a leaf.
    var overflows = 0
    /// Pages from the root of the tree to a leaf.
    var depth = 0

    var all: Int { leaves + branches + overflows }

    /// How many pages at most are copied when `keys` records anywhere in the tree are changed.
    func copied(by keys: Int) -> Int {
        min(keys, leaves) + min(keys * max(0, depth - 1), branches)
    }
}
