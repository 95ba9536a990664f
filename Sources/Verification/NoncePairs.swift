import Core

/// The pairs of key and nonce in a `NonceMemory`: a hash table with chains, and a queue for each class of windows.
///
/// The memory for pairs grows with them, in pieces that never move. So no call copies what others have added.
struct NoncePairs: Sendable {
    /// Where a pair is, plus one; zero: nowhere.
    private typealias Link = UInt32

    private struct Pair {
        var fingerprint: UInt128 = 0
        /// The pair is remembered before this time, in milliseconds.
        var expiry: UInt64 = 0
        var holder = MemoryHolder(collaboration: 0, participant: 0)
        /// In the chain of its hash.
        var nextInChain: Link = 0
        /// In the queue of its class; of a free place, the next free place.
        var nextInQueue: Link = 0
    }

    private struct PairQueue {
        var first: Link = 0
        var last: Link = 0
    }

    private static let pieceBits = 10
    private static let pieceCount = 1 << pieceBits

    private let max: Int
    private let hash: KeyedHash
    private let chainMask: Int
    /// The first pair of each chain, in pieces that are empty until one of their chains has a pair.
    private var chains: [[Link]]
    private var pairs: [[Pair]] = []
    private var firstFree: Link = 0
    private var queues = [PairQueue](repeating: PairQueue(), count: NoncePairs.windowClass(of: .max) + 1)
    private var shares = MemoryShares()
    private(set) var count = 0

    /// `max`: the most pairs.
    init(max: Int, hash: KeyedHash) {
        self.max = Swift.min(max, Int(Link.max) - NoncePairs.pieceCount)
        self.hash = hash
        var chainCount = NoncePairs.pieceCount
        while chainCount < self.max { chainCount *= 2 }
        chainMask = chainCount - 1
        chains = [[Link]](repeating: [], count: chainCount >> NoncePairs.pieceBits)
    }

    /// Windows of a class differ by an eighth at most: below 8 seconds each has its own class; above, the class is the
    /// position of the highest bit and the three bits behind it.
    static func windowClass(of seconds: UInt32) -> Int {
        let shift = Swift.max(0, 28 - seconds.leadingZeroBitCount)
        return 8 * shift + Int(seconds >> UInt32(shift))
    }

    private subscript(link: Link) -> Pair {
        _read { yield pairs[Int(link - 1) >> NoncePairs.pieceBits][Int(link - 1) & (NoncePairs.pieceCount - 1)] }
        _modify { yield &pairs[Int(link - 1) >> NoncePairs.pieceBits][Int(link - 1) & (NoncePairs.pieceCount - 1)] }
    }

    /// The first pair of a chain.
    private subscript(chain chain: Int) -> Link {
        get {
            let piece = chains[chain >> NoncePairs.pieceBits]
            return piece.isEmpty ? 0 : piece[chain & (NoncePairs.pieceCount - 1)]
        }
        set {
            let piece = chain >> NoncePairs.pieceBits
            if chains[piece].isEmpty { chains[piece] = [Link](repeating: 0, count: NoncePairs.pieceCount) }
            chains[piece][chain & (NoncePairs.pieceCount - 1)] = newValue
        }
    }

    private func chain(of fingerprint: UInt128) -> Int { Int(truncatingIfNeeded: hash(fingerprint)) & chainMask }

    /// Whether the pair is remembered at the time `now`.
    func isSpent(_ fingerprint: UInt128, at now: UInt64) -> Bool {
        var link = self[chain: chain(of: fingerprint)]
        while link != 0 {
            // A pair that was spent again may be here twice; one of them has expired.
            if self[link].fingerprint == fingerprint, self[link].expiry > now { return true }
            link = self[link].nextInChain
        }
        return false
    }

    private func hasRoom(for holder: MemoryHolder) -> Bool {
        count < max && shares.allows(holder, free: max - count)
    }

    /// Remembers a pair that is not spent, and forgets some that have expired. Returns false when there is no room, or
    /// when the holder has his share.
    mutating func add(_ fingerprint: UInt128, at now: UInt64, windowSeconds: UInt32, by holder: MemoryHolder) -> Bool {
        forget(at: now, atMost: Limits.noncesForgottenAtOnce)
        // No more is forgotten in all than was added.
        if !hasRoom(for: holder) { forget(at: now, atMost: Limits.noncesForgottenForRoom) }
        guard hasRoom(for: holder) else { return false }
        let link = takeFree()
        let chain = chain(of: fingerprint)
        self[link] = Pair(
            fingerprint: fingerprint, expiry: now + UInt64(windowSeconds) * 1000, holder: holder,
            nextInChain: self[chain: chain])
        self[chain: chain] = link
        let queue = NoncePairs.windowClass(of: windowSeconds)
        if queues[queue].last == 0 {
            queues[queue].first = link
        } else {
            self[queues[queue].last].nextInQueue = link
        }
        queues[queue].last = link
        shares.add(holder)
        count += 1
        return true
    }

    /// Forgets expired pairs, at most `most`.
    mutating func forget(at now: UInt64, atMost most: Int) {
        var left = most
        for queue in queues.indices {
            while left > 0, queues[queue].first != 0, self[queues[queue].first].expiry <= now {
                forgetFirst(of: queue)
                left -= 1
            }
        }
    }

    private mutating func forgetFirst(of queue: Int) {
        let link = queues[queue].first
        queues[queue].first = self[link].nextInQueue
        if queues[queue].first == 0 { queues[queue].last = 0 }
        unchain(link)
        shares.remove(self[link].holder)
        count -= 1
        precondition(count >= 0, "more pairs are forgotten than were remembered")
        self[link].nextInQueue = firstFree
        firstFree = link
    }

    private mutating func unchain(_ link: Link) {
        let chain = chain(of: self[link].fingerprint)
        let next = self[link].nextInChain
        guard self[chain: chain] != link else {
            self[chain: chain] = next
            return
        }
        var before = self[chain: chain]
        while self[before].nextInChain != link { before = self[before].nextInChain }
        self[before].nextInChain = next
    }

    private mutating func takeFree() -> Link {
        if firstFree == 0 {
            let start = pairs.count << NoncePairs.pieceBits
            var piece = [Pair](repeating: Pair(), count: NoncePairs.pieceCount)
            for place in 0..<NoncePairs.pieceCount - 1 { piece[place].nextInQueue = Link(start + place + 2) }
            pairs.append(piece)
            firstFree = Link(start + 1)
        }
        defer { firstFree = self[firstFree].nextInQueue }
        return firstFree
    }
}
