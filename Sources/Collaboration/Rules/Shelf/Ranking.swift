import Core

/// The items of a shelf in their order.
struct Ranking {
    struct Item {
        let item: UInt128
        var newest: UInt64 = 0
        var isPinned = false
        var score: UInt64 = 0
        var lastSignal: UInt64 = 0
        /// Where the link's collaboration stands in `Visit.collaborations`.
        var collaboration: Int?

        /// Pinned items first, then newer ones, then by fingerprint, so that the order is always the same.
        func stands(before other: Item) -> Bool {
            if isPinned != other.isPinned { return isPinned }
            if newest != other.newest { return newest > other.newest }
            return item > other.item
        }

        func isLessLikely(than other: Item) -> Bool {
            if score != other.score { return score < other.score }
            if lastSignal != other.lastSignal { return lastSignal < other.lastSignal }
            return other.stands(before: self)
        }
    }

    private(set) var items: [Item] = []
    /// Whether the first item is the suggested one.
    private(set) var hasSuggestion = false

    init(
        _ view: ShelfView, _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        var visit = Visit(view, now: context.milliseconds(of: context.now))
        var isDamaged = false
        try records.visitRecords(in: .beginning(with: visit.prefix)) { key, value in
            isDamaged = !visit.take(key, value)
            return !isDamaged
        }
        guard !isDamaged else { throw ServiceError(.storageDamaged, "a record of a shelf is damaged") }
        visit.settle()
        items = visit.items
        // Only links to collaborations are looked up, each collaboration once.
        if !visit.collaborations.isEmpty {
            var isThere: [Bool] = []
            for collaboration in visit.collaborations { isThere.append(try records.isStarted(collaboration)) }
            items.removeAll { item in item.collaboration.map { !isThere[$0] } ?? false }
        }
        items.sort { $0.stands(before: $1) }
        if let best = items.indices.max(by: { items[$0].isLessLikely(than: items[$1]) }), items[best].score > 0 {
            let suggestion = items.remove(at: best)
            items.insert(suggestion, at: 0)
            hasSuggestion = true
        }
    }
}

/// A walk over the records of a shelf, item by item.
private struct Visit {
    let prefix: [UInt8]
    private(set) var items: [Ranking.Item] = []
    private(set) var collaborations: [CollaborationIdentifier] = []
    private var places: [CollaborationIdentifier: Int] = [:]
    private let view: ShelfView
    private let now: UInt64
    private var current: Ranking.Item?
    private var signals = Signals()

    init(_ view: ShelfView, now: UInt64) {
        prefix = RecordKeys.items(view.account)
        self.view = view
        self.now = now
    }

    /// Whether the record is one of a shelf.
    mutating func take(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        guard key.count == prefix.count + ShelfKeys.itemBytes + ShelfKeys.conversationBytes else { return false }
        let item = key.loadUnaligned(fromByteOffset: prefix.count, as: UInt128.self)
        let conversation = key.loadUnaligned(fromByteOffset: prefix.count + ShelfKeys.itemBytes, as: UInt64.self)
        if current?.item != item {
            settle()
            current = Ranking.Item(item: item)
            signals = Signals()
        }
        if conversation == 0 {
            guard let known = Signals(value) else { return false }
            signals = known
            return true
        }
        guard let share = ShareHead(value) else { return false }
        guard view.shows(share, in: conversation) else { return true }
        let newest = current?.newest ?? 0
        current?.newest = max(newest, share.milliseconds == .max ? .max : share.milliseconds + 1)
        if share.isPinned { current?.isPinned = true }
        if share.leadsToCollaboration {
            guard let collaboration = share.collaboration(in: value) else { return false }
            let place = place(of: collaboration)
            current?.collaboration = place
        }
        return true
    }

    /// Ends the present item.
    mutating func settle() {
        guard var item = current, item.newest > 0, !signals.isHidden else { return }
        item.score = signals.score(isPinned: item.isPinned, shared: item.newest - 1, now: now)
        item.lastSignal = signals.lastMilliseconds
        items.append(item)
    }

    private mutating func place(of collaboration: CollaborationIdentifier) -> Int {
        if let known = places[collaboration] { return known }
        collaborations.append(collaboration)
        places[collaboration] = collaborations.count - 1
        return collaborations.count - 1
    }
}
