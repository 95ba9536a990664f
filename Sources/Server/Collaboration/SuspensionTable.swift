import Collaboration
import Core

/// The suspended queries by topic and by deadline. Every operation is cheap for whoever holds the lock around it: what
/// grows with the number of queries is done in portions.
struct SuspensionTable {
    /// Milliseconds of deadlines that are kept together.
    private static let slotMilliseconds: UInt64 = 64

    /// By numbers of their own, which are never used again: a task's address may be another task's when a closed
    /// connection's query is removed.
    private var suspensions: [UInt64: SuspendedQueries.Suspension] = [:]
    private var nextNumber: UInt64 = 0
    private var byTopic: [Topic: Set<UInt64>] = [:]
    /// By the deadline in units of `slotMilliseconds`; no set is empty.
    private var byDeadline: [UInt64: Set<UInt64>] = [:]
    /// No slot is before this one.
    private var firstSlot = UInt64.max
    /// For each topic that changed, the queries that waited for it. Some of them may have been removed since.
    private var changed = Queue<Set<UInt64>>()
    /// Queries that are removed because of one topic before the next topic's turn.
    private static let changedPerTurn = 16
    /// Topics of all suspensions together.
    private(set) var topicCount = 0

    /// Suspended queries.
    var count: Int { suspensions.count }

    var hasChanged: Bool { !changed.isEmpty }

    /// A number for the next suspension.
    mutating func number() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    mutating func insert(_ suspension: SuspendedQueries.Suspension, number: UInt64) {
        let previous = suspensions.updateValue(suspension, forKey: number)
        precondition(previous == nil && number < nextNumber, "a suspension has a number of its own")
        for topic in suspension.topics { byTopic[topic, default: []].insert(number) }
        topicCount += suspension.topics.count
        let slot = suspension.deadline / SuspensionTable.slotMilliseconds
        byDeadline[slot, default: []].insert(number)
        firstSlot = min(firstSlot, slot)
    }

    /// Removes a suspension; `nil` when it was removed before.
    @discardableResult
    mutating func remove(_ number: UInt64) -> SuspendedQueries.Suspension? {
        guard let suspension = suspensions.removeValue(forKey: number) else { return nil }
        for topic in suspension.topics { byTopic.removeMember(number, of: topic) }
        byDeadline.removeMember(number, of: suspension.deadline / SuspensionTable.slotMilliseconds)
        topicCount -= suspension.topics.count
        precondition(topicCount >= 0)
        assert(!suspensions.isEmpty || (topicCount == 0 && byTopic.isEmpty && byDeadline.isEmpty))
        return suspension
    }

    /// Marks the queries that wait for one of the topics. Returns whether there are any. The number of queries of a
    /// topic makes no difference to the time.
    mutating func markChanged(_ topics: [Topic]) -> Bool {
        var isMarked = false
        for topic in topics {
            guard let numbers = byTopic.removeValue(forKey: topic) else { continue }
            changed.append(numbers)
            isMarked = true
        }
        return isMarked
    }

    /// Removes up to `limit` marked queries. Topics take turns, so that many queries for one topic do not delay the few
    /// for another. Ends earlier behind queries with many topics.
    mutating func removeChanged(limit: Int) -> [SuspendedQueries.Suspension] {
        var removed: [SuspendedQueries.Suspension] = []
        var topics = 0
        while removed.count < limit, topics < Limits.topicsRemovedPerTurn, var numbers = changed.popFirst() {
            let end = min(limit, removed.count + SuspensionTable.changedPerTurn)
            while removed.count < end, topics < Limits.topicsRemovedPerTurn, let number = numbers.popFirst() {
                guard let suspension = remove(number) else { continue }
                removed.append(suspension)
                topics += suspension.topics.count
            }
            if !numbers.isEmpty { changed.append(numbers) }
        }
        return removed
    }

    /// Whether a deadline is not after `time`.
    mutating func isOver(at time: UInt64) -> Bool {
        guard !byDeadline.isEmpty else {
            firstSlot = .max
            return false
        }
        let slot = time / SuspensionTable.slotMilliseconds
        while firstSlot <= slot {
            if byDeadline[firstSlot]?.contains(where: { (suspensions[$0]?.deadline ?? .max) <= time }) == true {
                return true
            }
            guard firstSlot < slot else { return false }
            firstSlot += 1
        }
        return false
    }

    /// Removes up to `limit` queries whose deadline is not after `time`. Ends earlier behind queries with many topics.
    mutating func removeOver(at time: UInt64, limit: Int) -> [SuspendedQueries.Suspension] {
        var removed: [SuspendedQueries.Suspension] = []
        var topics = 0
        while removed.count < limit, topics < Limits.topicsRemovedPerTurn, isOver(at: time) {
            var numbers: [UInt64] = []
            for number in byDeadline[firstSlot] ?? [] {
                guard removed.count + numbers.count < limit else { break }
                if let deadline = suspensions[number]?.deadline, deadline <= time { numbers.append(number) }
            }
            for number in numbers where topics < Limits.topicsRemovedPerTurn {
                guard let suspension = remove(number) else { continue }
                removed.append(suspension)
                topics += suspension.topics.count
            }
        }
        return removed
    }

    /// Removes up to `limit` queries.
    mutating func removeAny(limit: Int) -> [SuspendedQueries.Suspension] {
        Array(suspensions.keys.prefix(limit)).compactMap { remove($0) }
    }
}

extension Dictionary where Value == Set<UInt64> {
    /// Removes a number from the set at `key`, and the set when it is empty then.
    fileprivate mutating func removeMember(_ number: UInt64, of key: Key) {
        guard let index = index(forKey: key) else { return }
        values[index].remove(number)
        if values[index].isEmpty { remove(at: index) }
    }
}
