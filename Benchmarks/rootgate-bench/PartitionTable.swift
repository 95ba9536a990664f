import Core
import Hashing

/// Which partition has a collaboration. A partition is a cluster of its own: it shares nothing with the others.
///
/// The first 12 bits of the SHA-256 of a collaboration's identifier are its slot. Whoever sends requests has a table
/// with the partition of each slot. So a partition is added by moving slots, and the others keep theirs.
struct PartitionTable {
    static let slots = 4096

    /// By slot.
    private(set) var partitions: [Int]

    /// `count` partitions, each with as many slots as the others, give or take one.
    init(partitions count: Int) {
        partitions = (0..<PartitionTable.slots).map { $0 * count / PartitionTable.slots }
    }

    static func slot(of collaboration: CollaborationIdentifier) -> Int {
        slot(of: SHA256.hash(collaboration.utf8).prefix)
    }

    /// `hash`: the first 64 bits of a hash.
    static func slot(of hash: UInt64) -> Int { Int(hash >> 52) }

    mutating func move(_ slot: Int, to partition: Int) { partitions[slot] = partition }

    /// The slots that a further partition gets, so that it has its share: one after the other, each of a partition that
    /// has most.
    var slotsOfOneMore: [Int] {
        let count = (partitions.max() ?? 0) + 1
        var left = [[Int]](repeating: [], count: count)
        for (slot, partition) in partitions.enumerated() { left[partition].append(slot) }
        return (0..<PartitionTable.slots / (count + 1)).compactMap { _ in
            left.indices.max { left[$0].count < left[$1].count }.flatMap { left[$0].popLast() }
        }
    }
}
