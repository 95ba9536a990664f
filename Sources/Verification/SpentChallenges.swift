import Core

/// The memory of spent challenges. It grows with the spent ones alone, and never forgets one before it has expired.
///
/// A challenge's number says which group of 64 it is in. A group of which any is spent takes 16 to 32 bytes. So a spent
/// challenge takes at most 32 bytes, and half a byte when its neighbours are spent too. The groups are kept by the time
/// in which their challenges expire, an eighth of the validity for each generation. A generation is dropped as a whole
/// when its time is over.
///
/// Who spends the first one of a group is counted as having it: see `MemoryShares`. No share is looked up while the
/// memory is nearly empty, because then nobody can be over his own.
package struct SpentChallenges: Sendable {
    /// What the spending of a challenge leads to.
    package enum Spending: Sendable {
        case spent
        case replayed
        /// The challenge expired after it was judged. The memory may already have forgotten whether it was spent.
        case expired
        /// There is no room, or the holder has his share.
        case memoryFull
    }

    /// The groups of the challenges that expire in one part of the time.
    package struct Generation: Sendable {
        fileprivate let number: UInt64
        fileprivate var tables: [SpentTable]
        fileprivate var groups = 0
        fileprivate var places = 0
        fileprivate var shares = MemoryShares()

        fileprivate init(number: UInt64, tableCount: Int) {
            self.number = number
            tables = [SpentTable](repeating: SpentTable(), count: tableCount)
        }
    }

    private static let generationsPerValidity: UInt64 = 8
    /// Generations with challenges that have not expired: those of the validity, and the one that has begun at each
    /// end.
    private static let generationsMax = Int(generationsPerValidity) + 2
    /// Bytes of the largest table, on average. A table is copied when it grows, so this bounds how long that takes.
    private static let tableBytesMax = 128 << 10

    /// The time of this batch. The memory still knows every challenge that has not expired at this time.
    package private(set) var now: UInt64 = 0
    /// The most groups in all generations.
    package let groupsMax: Int
    private let spanMilliseconds: UInt64
    private let tableCount: Int
    private let hash: KeyedHash
    /// Ascending.
    private var generations: [Generation] = []
    private var groups = 0
    /// Of all generations.
    private var shares = MemoryShares()

    /// `bytesMax`: memory for all groups; at least one group is kept in any case.
    package init(validMilliseconds: UInt64, bytesMax: Int, hash: KeyedHash) {
        self.hash = hash
        spanMilliseconds = validMilliseconds / SpentChallenges.generationsPerValidity + 1
        var tables = 1
        while 2 * tables * SpentChallenges.tableBytesMax <= bytesMax { tables *= 2 }
        tableCount = tables
        let fixed = SpentChallenges.generationsMax * SpentChallenges.generationBytes(tables)
        groupsMax = max(1, (bytesMax - fixed) / SpentTable.bytesPerGroupMax)
    }

    /// Bytes of a generation besides its groups.
    private static func generationBytes(_ tableCount: Int) -> Int {
        tableCount * MemoryLayout<SpentTable>.stride + MemoryShares.byteCount
    }

    /// Bytes in use.
    package var byteCount: Int {
        generations.reduce(0) {
            $0 + $1.places * SpentTable.placeBytes + SpentChallenges.generationBytes(tableCount)
        }
    }

    /// Lets the time go on, and returns the generations that have expired. The time never goes back: what is forgotten
    /// now has also expired for all later callers.
    package mutating func advance(to time: UInt64) -> [Generation] {
        guard time > now else { return [] }
        now = time
        let present = time / spanMilliseconds
        guard let first = generations.first, first.number < present else { return [] }
        let count = generations.firstIndex { $0.number >= present } ?? generations.count
        let expired = Array(generations[..<count])
        for generation in expired {
            groups -= generation.groups
            shares.remove(all: generation.shares)
        }
        generations.removeFirst(count)
        assert(groups == generations.reduce(0) { $0 + $1.groups }, "the groups are counted wrongly")
        return expired
    }

    /// Where the challenge's generation is, if there is one.
    @inline(__always)
    private func index(of number: UInt64) -> Int? {
        // The youngest is asked for most often.
        var index = generations.count - 1
        while index >= 0 {
            if generations[index].number == number { return index }
            index -= 1
        }
        return nil
    }

    /// The table of a generation that has the group.
    @inline(__always)
    private func table(_ hash: UInt64) -> Int { Int(hash >> 32) & (tableCount - 1) }

    /// Whether the challenge is spent. One that has expired may be forgotten.
    package func isSpent(_ token: ChallengeBook.Token) -> Bool {
        guard let index = index(of: token.expiry / spanMilliseconds) else { return false }
        let hash = hash(token.number / 64)
        let bits = generations[index].tables[table(hash)].bits(of: token.number / 64, hash: hash)
        return bits >> (token.number % 64) & 1 == 1
    }

    /// Spends the challenge. `holder` is called only when a group begins with it.
    package mutating func spend(
        _ token: ChallengeBook.Token, by holder: @autoclosure () -> MemoryHolder
    ) -> Spending {
        guard now <= token.expiry else { return .expired }
        let group = token.number / 64
        let bit: UInt64 = 1 << (token.number % 64)
        let hash = hash(group)
        let index = index(of: token.expiry / spanMilliseconds)
        if let index {
            let bits = generations[index].tables[table(hash)].bits(of: group, hash: hash)
            guard bits & bit == 0 else { return .replayed }
            if bits != 0 {
                generations[index].tables[table(hash)].add(bit, to: group, hash: hash)
                return .spent
            }
        }
        let newHolder = holder()
        guard hasRoom(for: newHolder) else { return .memoryFull }
        begin(group, bit, of: newHolder, in: index ?? insertGeneration(token.expiry / spanMilliseconds))
        assert(isSpent(token), "a spent challenge was not remembered")
        return .spent
    }

    private func hasRoom(for holder: MemoryHolder) -> Bool {
        let free = groupsMax - groups
        guard free > 0 else { return false }
        // A holder has no more than there is. Below this, that is less than a participant's share.
        if groups < free / Limits.sharesPerCollaboration { return true }
        return shares.allows(holder, free: free)
    }

    private mutating func begin(_ group: UInt64, _ bits: UInt64, of holder: MemoryHolder, in index: Int) {
        let table = table(hash(group))
        let before = generations[index].tables[table].placeCount
        generations[index].tables[table].insert(group, bits, hash: hash)
        generations[index].places += generations[index].tables[table].placeCount - before
        generations[index].groups += 1
        generations[index].shares.add(holder)
        shares.add(holder)
        groups += 1
        precondition(groups <= groupsMax, "the memory of spent challenges is over its limit")
    }

    /// Makes the generation with that number, which does not exist. Returns where it is.
    private mutating func insertGeneration(_ number: UInt64) -> Int {
        let index = generations.firstIndex { $0.number > number } ?? generations.count
        generations.insert(Generation(number: number, tableCount: tableCount), at: index)
        precondition(
            generations.count <= SpentChallenges.generationsMax, "a challenge expires later than one that begins now")
        return index
    }
}
