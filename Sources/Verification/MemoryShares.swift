import Core

/// Counts what each collaboration, and each participant of one, has of a memory, so that none of them can fill it for
/// the others. The counters take the same room whatever is counted.
///
/// A collaboration may have as much as is free beside it (a dynamic threshold: Choudhury and Hahne, 1998). So one
/// collaboration leaves half of the memory free, and n of them leave an (n + 1)th. A participant may have a quarter of
/// what his collaboration may have.
///
/// It is a count-min sketch (Cormode and Muthukrishnan, 2005): each collaboration and each participant has a counter in
/// each of two rows, and holders may have a counter in common. The smaller one of a holder's counters is never less
/// than what he has. It is more only if others have both of his counters.
package struct MemoryShares: Sendable {
    private static let indexBits: UInt32 = 10
    private static let rowCount = 4
    private static let counterCount = rowCount << Int(indexBits)
    /// Bytes of memory for the counters.
    static let byteCount = counterCount * MemoryLayout<UInt32>.stride

    /// Two rows for collaborations, then two for participants.
    private var counters = [UInt32](repeating: 0, count: MemoryShares.counterCount)

    package init() {}

    /// Where the counters of a hash are: in the rows `row` and `row + 1`.
    @inline(__always)
    private static func places(of hash: UInt32, row: Int) -> (Int, Int) {
        let mask: UInt32 = 1 << indexBits - 1
        return (
            row << Int(indexBits) + Int(hash & mask), (row + 1) << Int(indexBits) + Int(hash >> indexBits & mask)
        )
    }

    private func count(of hash: UInt32, row: Int) -> Int {
        let (first, second) = MemoryShares.places(of: hash, row: row)
        return Int(min(counters[first], counters[second]))
    }

    /// Whether the holder may have one more, while `free` more fit into the memory.
    package func allows(_ holder: MemoryHolder, free: Int) -> Bool {
        let part = Limits.sharesPerCollaboration
        return count(of: holder.collaboration, row: 0) < free
            && count(of: holder.participant, row: 2) < (free + part - 1) / part
    }

    /// Counts one more of the holder's.
    package mutating func add(_ holder: MemoryHolder) {
        for (hash, row) in [(holder.collaboration, 0), (holder.participant, 2)] {
            let (first, second) = MemoryShares.places(of: hash, row: row)
            counters[first] += 1
            counters[second] += 1
        }
    }

    /// Counts one less of the holder's. Traps when he has none.
    package mutating func remove(_ holder: MemoryHolder) {
        for (hash, row) in [(holder.collaboration, 0), (holder.participant, 2)] {
            let (first, second) = MemoryShares.places(of: hash, row: row)
            counters[first] -= 1
            counters[second] -= 1
        }
    }

    /// Counts all that `others` have counted as gone. Traps when it was not counted here.
    package mutating func remove(all others: MemoryShares) {
        for place in counters.indices { counters[place] -= others.counters[place] }
    }
}
