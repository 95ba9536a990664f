import Core

/// The items of a shelf in their order.
struct Ranking {
    struct Item {
        let item: UInt128
        var newest: UInt64 = 0
        var isPinned = false
        var score: UInt64 = 0
        var lastSignal: UInt64 = 0

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
    let refusals: Refusals

    init(
        _ account: Account, _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        let consent = try records.load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent()
        let refusals = Refusals(consent, context)
        self.refusals = refusals
        let prefix = RecordKeys.items(account)
        var items: [Item] = []
        var current: Item?
        var signals = Signals()
        func settle() {
            guard var item = current, item.newest > 0, !signals.isHidden else { return }
            item.score = signals.score(isPinned: item.isPinned)
            item.lastSignal = signals.lastMilliseconds
            items.append(item)
        }
        var isDamaged = false
        try records.visitRecords(in: .beginning(with: prefix)) { key, value in
            guard key.count == prefix.count + ShelfKeys.itemBytes + ShelfKeys.conversationBytes else {
                isDamaged = true
                return false
            }
            let item = key.loadUnaligned(fromByteOffset: prefix.count, as: UInt128.self)
            let conversation = key.loadUnaligned(fromByteOffset: prefix.count + ShelfKeys.itemBytes, as: UInt64.self)
            if current?.item != item {
                settle()
                current = Item(item: item)
                signals = Signals()
            }
            if conversation == 0 {
                signals = Signals(value) ?? Signals()
            } else if let share = ShareHead(value), share.counts,
                share.isPinned || refusals.allows(app: share.app, conversation: conversation)
            {
                let newest = current?.newest ?? 0
                current?.newest = max(newest, share.milliseconds + 1)
                if share.isPinned { current?.isPinned = true }
            }
            return true
        }
        guard !isDamaged else { throw ServiceError(.storageDamaged, "a record of a shelf is damaged") }
        settle()
        items.sort { $0.stands(before: $1) }
        if let best = items.indices.max(by: { items[$0].isLessLikely(than: items[$1]) }), items[best].score > 0 {
            let suggestion = items.remove(at: best)
            items.insert(suggestion, at: 0)
            hasSuggestion = true
        }
        self.items = items
    }
}
