import Collaboration

/// The latest changes of topics, numbered. It tells whether a topic changed after the snapshot of a decision was taken.
struct ChangeHistory: Sendable {
    /// The number of changes that are remembered, and of topics of one change. A change of more topics counts as a
    /// change of all topics.
    private static let capacity = 512
    private static let topicsMax = 512

    /// Hash values of the topics of change `number`, at `number % capacity`; `nil` for all topics. When two topics have
    /// the same hash value, a query may be evaluated once more than necessary.
    private var changes = [[Int]?](repeating: [], count: ChangeHistory.capacity)
    /// Changes so far.
    private(set) var count: UInt64 = 0

    mutating func append(_ topics: [Topic]) {
        let hashes = topics.count <= ChangeHistory.topicsMax ? topics.map(\.hashValue) : nil
        changes[Int(count % UInt64(ChangeHistory.capacity))] = hashes
        count += 1
    }

    /// Whether one of `topics` changed after the first `earlierCount` changes. Also true when the changes since then
    /// are no longer remembered.
    func hasChange(of topics: Set<Topic>, since earlierCount: UInt64) -> Bool {
        precondition(earlierCount <= count)
        guard earlierCount < count else { return false }
        guard count - earlierCount <= UInt64(ChangeHistory.capacity) else { return true }
        let hashes = Set(topics.map(\.hashValue))
        return (earlierCount..<count).contains { number in
            guard let changed = changes[Int(number % UInt64(ChangeHistory.capacity))] else { return true }
            return changed.contains { hashes.contains($0) }
        }
    }
}
