package import Core
public import Foundation

/// Records that a link was shared in a conversation, on the shelves of the recipients.
public struct RecordShare: RuledRequest {
    public static let name = "recordShare"
    public typealias Answer = ChangeReceipt

    public var url: URL
    public var title: String?
    /// The bundle identifier of the app that opens the link.
    public var app: String
    public var sharer: Sharer
    public var conversation: Conversation
    /// `nil`: now.
    public var date: Date?
    /// Whether it was pinned as it was shared.
    public var isPinned: Bool?
    /// The participants of the conversation on whose shelves it belongs.
    public var recipients: [ShareRecipient]

    public init(
        url: URL, title: String? = nil, app: String, sharer: Sharer, conversation: Conversation, date: Date? = nil,
        isPinned: Bool? = nil, recipients: [ShareRecipient]
    ) {
        self.url = url
        self.title = title
        self.app = app
        self.sharer = sharer
        self.conversation = conversation
        self.date = date
        self.isPinned = isPinned
        self.recipients = recipients
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLimit(recipients.count, Limits.recipientsPerShareMax, "recipients")
        try check(url.absoluteString, "a link", bytesMax: Limits.linkBytesMax)
        guard url.scheme != nil else { throw ServiceError(.malformedRequest, "a link has a scheme, as https") }
        try check(title, "a title")
        try check(sharer.name, "a name")
        try check(sharer.avatar, "an avatar", bytesMax: Limits.linkBytesMax)
        try check(conversation.name, "a conversation's name")
        try checkName(conversation.identifier, "a conversation's identifier")
        try checkName(app, "an app's identifier")
        let item = ShelfKeys.item(url, context)
        let place = ShelfKeys.short(conversation.identifier, context)
        // A later date is moved to tomorrow: otherwise that share would stay the latest one.
        let milliseconds = context.milliseconds(of: min(date ?? context.now, context.now.addingTimeInterval(86_400)))
        let text = try ShareText.bytes(
            url: url, title: title, app: app, sharer: sharer, conversation: conversation,
            date: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
        var edit = Edit()
        var topics: [Topic] = []
        var seen: Set<Account> = []
        for recipient in recipients where seen.insert(recipient.account).inserted {
            let key = ShelfKeys(recipient.account).share(item, place)
            let known = try records.record(key)
            let before = known?.value.withRawBytes { ShareHead($0) }
            // Only the latest share of a conversation counts: an older one changes nothing.
            if let before, before.milliseconds > milliseconds { continue }
            let head = ShareHead(
                milliseconds: milliseconds, isPinned: isPinned ?? before?.isPinned ?? false,
                isGroup: conversation.isGroup, knowsSomebody: recipient.knowsSomebody,
                app: shortNumber(ShelfKeys.short(app, context)))
            edit.records += [
                RecordEdit(
                    key, value: head.bytes + text, expecting: known.map { .version($0.version) } ?? .absent),
                RecordEdit(RecordKeys.shelf(recipient.account), value: []),
            ]
            topics.append(.shelf(recipient.account))
        }
        guard !edit.records.isEmpty else { return .unchanged }
        let count = topics.count
        return .change(edit, topics: topics, count: count)
    }
}

/// A page of a person's shelf: the suggested item, then pinned items, then the others, the newest first among each.
/// With `waitMilliseconds` the answer waits for a version of the shelf above `after`.
public struct ReadShelf: RuledRequest {
    public static let name = "readShelf"
    package static let isQuery = true
    public typealias Answer = Shelf

    public var account: Account
    /// Items in the answer.
    public var limit: Int
    /// Items before the first one of the answer.
    public var offset: Int?
    /// With `waitMilliseconds`: the version that the caller has.
    public var after: UInt64?
    public var waitMilliseconds: Int?

    public init(
        of account: Account, limit: Int = 64, offset: Int? = nil, after: UInt64? = nil, waitMilliseconds: Int? = nil
    ) {
        self.account = account
        self.limit = limit
        self.offset = offset
        self.after = after
        self.waitMilliseconds = waitMilliseconds
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        switch try decideEncoded(context, records) {
        case .answer(let json): return .answer(try JSON.decode(Shelf.self, from: json))
        case .wait(let topics, let milliseconds, let json):
            return .wait(topics: topics, milliseconds: milliseconds, answer: try JSON.decode(Shelf.self, from: json))
        case .edit: throw ServiceError(.internalFault, "reading a shelf changes nothing")
        }
    }

    /// Builds the page from the stored JSON of the shares.
    package func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision {
        try checkPage(limit, Limits.highlightsPerPageMax)
        let version = try records.record(RecordKeys.shelf(account))?.version ?? 0
        func shelf(_ count: Int, _ highlights: [UInt8]) -> [UInt8] {
            Array(#"{"count":\#(count),"version":\#(version),"highlights":["#.utf8) + highlights + Array("]}".utf8)
        }
        if let after, let waitMilliseconds, waitMilliseconds > 0, version <= after {
            return .wait(
                topics: [.shelf(account)], milliseconds: min(waitMilliseconds, Limits.followMillisecondsMax),
                answer: shelf(0, []))
        }
        let ranking = try Ranking(account, context, records)
        let count = ranking.items.count
        let start = min(max(0, offset ?? 0), count)
        var highlights: [UInt8] = []
        for index in start..<min(count, start + limit) where highlights.count < Limits.shelfPageBytesMax {
            if index > start { highlights.append(UInt8(ascii: ",")) }
            try records.append(
                ranking.items[index].item, of: account, ranking.refusals,
                isSuggested: ranking.hasSuggestion && index == 0, to: &highlights)
        }
        return .answer(shelf(count, highlights))
    }
}

/// The items of a shelf in their order.
private struct Ranking {
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

/// Pins an item in all conversations or in one, or removes the pin. A pin is consent: a pinned item is shown even when
/// its conversation, its app or everything was refused.
public struct PinHighlight: RuledRequest {
    public static let name = "pinHighlight"

    public struct Answer: Hashable, Codable, Sendable {
        public let receipt: ChangeReceipt
        /// Whether the app should ask the person about automatic sharing. True when something was pinned that is
        /// refused without a pin, or when something was pinned and `everything` was not allowed.
        public let offersAutomaticSharing: Bool
    }

    public var account: Account
    public var url: URL
    /// `nil`: all conversations.
    public var conversation: String?
    public var isPinned: Bool

    public init(_ url: URL, of account: Account, in conversation: String? = nil, isPinned: Bool = true) {
        self.account = account
        self.url = url
        self.conversation = conversation
        self.isPinned = isPinned
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let item = ShelfKeys.item(url, context)
        guard try !records.isHidden(item, from: account) else {
            throw ServiceError(.unknownHighlight, "\(account) has removed \(url.absoluteString)")
        }
        let wanted = conversation.map { shortNumber(ShelfKeys.short($0, context)) }
        let consent = try records.load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent()
        let refusals = Refusals(consent, context)
        var edit = Edit()
        var isKnown = false
        var isKeptOut = false
        let heads = try records.shareHeads(of: item, account) { head, conversation in
            guard wanted == nil || conversation == wanted else { return false }
            isKnown = true
            if !refusals.allows(app: head.app, conversation: conversation) { isKeptOut = true }
            return head.isPinned != isPinned
        }
        for (key, before) in heads {
            guard let record = try records.record(key) else { continue }
            var head = before
            head.isPinned = isPinned
            edit.records.append(
                RecordEdit(
                    record.key, value: head.bytes + record.value.dropFirst(ShareHead.byteCount),
                    expecting: .version(record.version)))
        }
        guard isKnown else {
            throw ServiceError(.unknownHighlight, "\(url.absoluteString) was not shared with \(account) there")
        }
        let offers = isPinned && (isKeptOut || consent.everything != true)
        guard !edit.records.isEmpty else {
            return .answer(
                Answer(receipt: ChangeReceipt(sequence: nil, changed: 0), offersAutomaticSharing: offers))
        }
        let count = edit.records.count
        edit.records.append(RecordEdit(RecordKeys.shelf(account), value: []))
        return .edit(edit, topics: [.shelf(account)]) { receipt in
            Answer(
                receipt: ChangeReceipt(sequence: receipt.sequence, changed: count), offersAutomaticSharing: offers)
        }
    }
}

/// Hides an item from a person's shelf permanently, even when it is shared again. Repeating the request changes
/// nothing.
public struct RemoveHighlight: RuledRequest {
    public static let name = "removeHighlight"
    public typealias Answer = ChangeReceipt

    public var account: Account
    public var url: URL

    public init(_ url: URL, of account: Account) {
        self.account = account
        self.url = url
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard try !records.isHidden(ShelfKeys.item(url, context), from: account) else {
            return .unchanged
        }
        return try .noting(url, account, context, records) { $0.isHidden = true }
    }
}

/// Records that a person viewed or used an item, or how it was shown. The suggestion is computed from these signals.
public struct SignalHighlight: RuledRequest {
    public static let name = "signalHighlight"
    public typealias Answer = ChangeReceipt

    public var account: Account
    public var url: URL
    public var signal: HighlightSignal
    /// With `shown`: how the item was shown. Being shown in detail counts twice.
    public var context: DisplayContext?

    public init(_ signal: HighlightSignal, _ url: URL, of account: Account, context: DisplayContext? = nil) {
        self.account = account
        self.url = url
        self.signal = signal
        self.context = context
    }

    package func decide(
        _ ruleContext: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try .noting(url, account, ruleContext, records) { signals in
            switch signal {
            case .viewed: signals.views = signals.views &+ 1
            case .interacted: signals.interactions = signals.interactions &+ 1
            case .shown: signals.shown = signals.shown &+ (context == .detail ? 2 : 1)
            }
        }
    }
}

extension Decision<ChangeReceipt> {
    /// Changes the signals of a person about an item.
    fileprivate static func noting(
        _ url: URL, _ account: Account, _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable,
        _ change: (inout Signals) -> Void
    ) throws(ServiceError) -> Decision {
        _ = try records.shares(of: url, account, context)
        let key = ShelfKeys(account).signals(ShelfKeys.item(url, context))
        let known = try records.record(key)
        var signals = known?.value.withRawBytes { Signals($0) } ?? Signals()
        change(&signals)
        signals.lastMilliseconds = context.milliseconds(of: context.now)
        var edit = Edit()
        edit.records = [
            RecordEdit(key, value: signals.bytes, expecting: known.map { .version($0.version) } ?? .absent),
            RecordEdit(RecordKeys.shelf(account), value: []),
        ]
        return .change(edit, topics: [.shelf(account)], count: 1)
    }
}
