package import Core
public import Foundation

// The records of a shelf, under `h account 0`:
//
//     item (16) 0000000000000000     what the person did with the item: hidden (1), zero (3), views (4),
//                                    interactions (4), shown (4), last of them in milliseconds (8)
//     item (16) conversation (8)     the latest share in a conversation: time in milliseconds (8), flags (1: 1 pinned,
//                                    2 group, 4 knows somebody), zero (7), app (8), then JSON
//
// Item, conversation and app are the first bytes of the SHA-256 of the link, the conversation's identifier and the
// app's. Numbers are little-endian. A shelf is ranked from these few bytes; JSON is read for what is returned.

/// What a person did with an item.
private struct Signals {
    static let byteCount = 24
    var isHidden = false
    var views: UInt32 = 0
    var interactions: UInt32 = 0
    var shown: UInt32 = 0
    var lastMilliseconds: UInt64 = 0

    init() {}

    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let hidden = reader.byte(), reader.bytes(3) != nil, let views: UInt32 = reader.integer(),
            let interactions: UInt32 = reader.integer(), let shown: UInt32 = reader.integer(),
            let last: UInt64 = reader.integer()
        else { return nil }
        isHidden = hidden == 1
        (self.views, self.interactions, self.shown, lastMilliseconds) = (views, interactions, shown, last)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = [isHidden ? 1 : 0, 0, 0, 0]
        for count in [views, interactions, shown] { bytes.appendInteger(count) }
        bytes.appendInteger(lastMilliseconds)
        return bytes
    }

    /// How likely the person looks for the item. Interacting says most; being shown says a little, and nothing alone.
    func score(isPinned: Bool) -> UInt64 {
        guard views > 0 || interactions > 0 else { return 0 }
        return 4 * UInt64(interactions) + 2 * UInt64(views) + UInt64(min(shown, 4)) + (isPinned ? 3 : 0)
    }
}

/// The latest share of an item in a conversation: the packed part.
private struct ShareHead {
    static let byteCount = 24
    var milliseconds: UInt64
    var isPinned: Bool
    var isGroup: Bool
    var knowsSomebody: Bool
    var app: UInt64

    init(milliseconds: UInt64, isPinned: Bool, isGroup: Bool, knowsSomebody: Bool, app: UInt64) {
        self.milliseconds = milliseconds
        self.isPinned = isPinned
        self.isGroup = isGroup
        self.knowsSomebody = knowsSomebody
        self.app = app
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let milliseconds: UInt64 = reader.integer(), let flags = reader.byte(), reader.bytes(7) != nil,
            let app: UInt64 = reader.integer()
        else { return nil }
        self.init(
            milliseconds: milliseconds, isPinned: flags & 1 != 0, isGroup: flags & 2 != 0, knowsSomebody: flags & 4 != 0,
            app: app)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendInteger(milliseconds)
        bytes.append((isPinned ? 1 : 0) | (isGroup ? 2 : 0) | (knowsSomebody ? 4 : 0))
        bytes += [UInt8](repeating: 0, count: 7)
        bytes.appendInteger(app)
        return bytes
    }

    /// Group conversations count when the person knows somebody in them.
    var counts: Bool { !isGroup || knowsSomebody }
}

/// The latest share of an item in a conversation: the part for people.
private struct StoredShare: Codable {
    var url: URL
    var title: String?
    var app: String
    var sharer: Sharer
    var conversation: Conversation
    var date: Date
}

/// The keys and fingerprints of an account's shelf.
private struct ShelfKeys {
    let prefix: [UInt8]

    init(_ account: Account) {
        prefix = RecordKeys.items(account)
    }

    static func item(_ url: URL, _ context: RuleContext) -> [UInt8] { context.fingerprint(url.absoluteString) }

    static func short(_ text: String, _ context: RuleContext) -> [UInt8] { context.fingerprint(text, count: 8) }

    func signals(_ item: [UInt8]) -> [UInt8] { prefix + item + [UInt8](repeating: 0, count: 8) }

    func share(_ item: [UInt8], _ conversation: [UInt8]) -> [UInt8] { prefix + item + conversation }

    func all(_ item: [UInt8]) -> RecordRange { RecordRange(prefix + item, prefix + item + [UInt8](repeating: 0xff, count: 9)) }
}

/// The consent of an account as a ranking looks at it.
private struct Refusals {
    let everything: Bool
    let apps: Set<UInt64>
    let conversations: Set<UInt64>

    init(_ consent: Consent, _ context: RuleContext) {
        func refused(_ answers: [String: Bool]) -> Set<UInt64> {
            Set(answers.filter { !$0.value }.keys.map { shortNumber(ShelfKeys.short($0, context)) })
        }
        everything = !(consent.everything ?? true)
        apps = refused(consent.apps)
        conversations = refused(consent.conversations)
    }

    func allows(app: UInt64, conversation: UInt64) -> Bool {
        !everything && !apps.contains(app) && !conversations.contains(conversation)
    }
}

private func shortNumber(_ bytes: some Collection<UInt8>) -> UInt64 {
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { $0.copyBytes(from: bytes.prefix(8)) }
    return number
}

/// Records that a link was shared in a conversation, on the shelf of everybody who may see it there.
public struct RecordShare: RuledRequest {
    public static let name = "recordShare"
    public typealias Answer = ChangeReceipt

    public var url: URL
    public var title: String?
    /// The bundle identifier of the app that opens the link.
    public var app: String
    public var sharer: Sharer
    public var conversation: Conversation
    /// Now, unless it is said.
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
        try check(recipients.count, atMost: Limits.recipientsPerShareMax, "recipients")
        try check(url.absoluteString, "a link", bytesMax: Limits.linkBytesMax)
        try check(title, "a title")
        try check(sharer.name, "a name")
        try check(sharer.avatar, "an avatar", bytesMax: Limits.linkBytesMax)
        try check(conversation.name, "a conversation's name")
        try checkName(conversation.identifier, "a conversation's identifier")
        try checkName(app, "an app's identifier")
        let item = ShelfKeys.item(url, context)
        let place = ShelfKeys.short(conversation.identifier, context)
        let milliseconds = context.milliseconds(of: date ?? context.now)
        let share = StoredShare(
            url: url, title: title, app: app, sharer: sharer, conversation: conversation,
            date: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
        let json = try JSON.encode(share)
        var edit = Edit()
        var topics: [Topic] = []
        var seen: Set<Account> = []
        for recipient in recipients where seen.insert(recipient.account).inserted {
            let key = ShelfKeys(recipient.account).share(item, place)
            let known = try records.record(key)
            let before = known?.value.withRawBytes { ShareHead($0) }
            // One that arrives late changes nothing: the latest share counts.
            if let before, before.milliseconds > milliseconds { continue }
            let head = ShareHead(
                milliseconds: milliseconds, isPinned: isPinned ?? before?.isPinned ?? false,
                isGroup: conversation.isGroup, knowsSomebody: recipient.knowsSomebody,
                app: shortNumber(ShelfKeys.short(app, context)))
            edit.records += [
                RecordEdit(
                    key, value: head.bytes + json, expecting: known.map { .version($0.version) } ?? .absent),
                RecordEdit(RecordKeys.shelf(recipient.account), value: []),
            ]
            topics.append(.shelf(recipient.account))
        }
        guard !edit.records.isEmpty else { return .answer(ChangeReceipt(sequence: nil, changed: 0)) }
        let count = topics.count
        return .edit(edit, topics: topics) { ChangeReceipt(sequence: $0.sequence, changed: count) }
    }
}

extension RuleContext {
    fileprivate func milliseconds(of date: Date) -> UInt64 {
        UInt64(max(0, min((date.timeIntervalSince1970 * 1000).rounded(), 9e15)))
    }
}

/// A person's shelf: the item that the person most likely looks for, then what is pinned, then the rest; the newest
/// first each. With a time to wait, the answer waits for a shelf that is newer than `after`.
public struct ReadShelf: RuledRequest {
    public static let name = "readShelf"
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
        try checkPage(limit, Limits.highlightsPerPageMax)
        let version = try records.record(RecordKeys.shelf(account))?.version ?? 0
        if let after, let waitMilliseconds, waitMilliseconds > 0, version <= after {
            return .wait(
                topics: [.shelf(account)], milliseconds: min(waitMilliseconds, Limits.followMillisecondsMax),
                answer: Shelf(highlights: [], count: 0, version: version))
        }
        let ranking = try Ranking(account, context, records)
        let (start, end) = (min(max(0, offset ?? 0), ranking.items.count), ranking.items.count)
        var highlights: [Highlight] = []
        for index in start..<min(end, start + limit) {
            highlights.append(
                try records.highlight(ranking.items[index].item, of: account, ranking.refusals, isSuggested: ranking.hasSuggestion && index == 0))
        }
        return .answer(Shelf(highlights: highlights, count: end, version: version))
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

        /// Pinned ones first, then the newest; never a tie, so that a shelf is always the same.
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
            guard key.count == prefix.count + 24 else {
                isDamaged = true
                return false
            }
            let item = key.loadUnaligned(fromByteOffset: prefix.count, as: UInt128.self)
            let conversation = key.loadUnaligned(fromByteOffset: prefix.count + 16, as: UInt64.self)
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

extension RecordReader where Self: ~Copyable {
    /// An item with its attributions.
    fileprivate func highlight(
        _ item: UInt128, of account: Account, _ refusals: Refusals, isSuggested: Bool
    ) throws(ServiceError) -> Highlight {
        let bytes = withUnsafeBytes(of: item) { Array($0) }
        let shares = try shares(of: bytes, account, refusals)
        guard let newest = shares.first else {
            throw ServiceError(.storageDamaged, "an item of a shelf has no share")
        }
        return Highlight(
            url: newest.share.url, title: newest.share.title, app: newest.share.app, date: newest.share.date,
            isPinned: shares.contains { $0.isPinned }, isSuggested: isSuggested,
            attributions: shares.prefix(Limits.attributionsPerItemMax).map { share, isPinned in
                Attribution(
                    sharer: share.sharer, conversation: share.conversation, date: share.date, isPinned: isPinned)
            })
    }

    /// Where the shares of an item stand that `isWanted` takes, newest first; so many as are looked at.
    fileprivate func shareHeads(
        of item: [UInt8], _ account: Account, where isWanted: (_ head: ShareHead, _ conversation: UInt64) -> Bool
    ) throws(ServiceError) -> [(key: [UInt8], head: ShareHead)] {
        var found: [(key: [UInt8], head: ShareHead)] = []
        try visitRecords(in: ShelfKeys(account).all(item)) { key, value in
            let conversation = shortNumber(key.suffix(8))
            if conversation != 0, let head = ShareHead(value), isWanted(head, conversation) {
                found.append((Array(key), head))
            }
            return true
        }
        found.sort { $0.head.milliseconds > $1.head.milliseconds }
        return Array(found.prefix(Limits.conversationsPerItemMax))
    }

    /// The shares of an item that count for the account, newest first.
    private func shares(
        of item: [UInt8], _ account: Account, _ refusals: Refusals
    ) throws(ServiceError) -> [(share: StoredShare, isPinned: Bool)] {
        var shares: [(share: StoredShare, isPinned: Bool)] = []
        let heads = try shareHeads(of: item, account) { head, conversation in
            head.counts && (head.isPinned || refusals.allows(app: head.app, conversation: conversation))
        }
        for (key, head) in heads {
            guard let record = try record(key) else { continue }
            let json = StoredRecord(
                key: record.key, version: record.version, value: Array(record.value.dropFirst(ShareHead.byteCount)))
            shares.append((try json.decoded(StoredShare.self), head.isPinned))
        }
        return shares.sorted { a, b in
            if a.share.date != b.share.date { return a.share.date > b.share.date }
            return a.share.conversation.identifier > b.share.conversation.identifier
        }
    }

    /// Whether the account has removed the item.
    fileprivate func isHidden(_ item: [UInt8], from account: Account) throws(ServiceError) -> Bool {
        try record(ShelfKeys(account).signals(item))?.value.withRawBytes { Signals($0) }?.isHidden ?? false
    }

    /// The item of a link as the account sees it, with the names of all who shared it, the latest first; or
    /// `unknownHighlight`.
    fileprivate func highlight(
        _ url: URL, of account: Account, _ context: RuleContext
    ) throws(ServiceError) -> (highlight: Highlight, sharers: [String]) {
        let item = ShelfKeys.item(url, context)
        let unknown = ServiceError(.unknownHighlight, "\(url.absoluteString) is not on the shelf of \(account)")
        guard try !isHidden(item, from: account) else { throw unknown }
        let consent = try load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent()
        let refusals = Refusals(consent, context)
        let shares = try shares(of: item, account, refusals)
        guard !shares.isEmpty else { throw unknown }
        let number = item.withUnsafeBytes { $0.loadUnaligned(as: UInt128.self) }
        return (try highlight(number, of: account, refusals, isSuggested: false), shares.map(\.share.sharer.name))
    }
}

/// Pins an item, or a share of it in one conversation, or takes the pin off. A pin is consent: a pinned item shows
/// whatever was said of its conversation, its app or everything.
public struct PinHighlight: RuledRequest {
    public static let name = "pinHighlight"

    public struct Answer: Hashable, Codable, Sendable {
        public let receipt: ChangeReceipt
        /// Whether the person should be asked about automatic sharing: something was pinned that would not show by
        /// itself, or nothing was ever said about it.
        public let offersAutomaticSharing: Bool
    }

    public var account: Account
    public var url: URL
    /// All conversations, unless one is named.
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

/// Hides an item from a person from now on, whoever shares it again. Doing it again is harmless.
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
            return .answer(ChangeReceipt(sequence: nil, changed: 0))
        }
        return try .noting(url, account, context, records) { $0.isHidden = true }
    }
}

/// Notes that a person viewed or used an item, or where it was shown: what the suggestion is made from.
public struct SignalHighlight: RuledRequest {
    public static let name = "signalHighlight"
    public typealias Answer = ChangeReceipt

    public var account: Account
    public var url: URL
    public var signal: HighlightSignal
    /// With `shown`: how. Being shown in detail counts twice.
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
    /// Changes what is known of a person and an item.
    fileprivate static func noting(
        _ url: URL, _ account: Account, _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable,
        _ change: (inout Signals) -> Void
    ) throws(ServiceError) -> Decision {
        _ = try records.highlight(url, of: account, context)
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
        return .edit(edit, topics: [.shelf(account)]) { ChangeReceipt(sequence: $0.sequence, changed: 1) }
    }
}

/// Says whether what is shared shows by itself: in one conversation, in one app, or at all.
public struct SetConsent: RuledRequest {
    public static let name = "setConsent"
    public typealias Answer = ChangeReceipt

    public var account: Account
    public var level: ConsentLevel
    /// `nil` takes back what was said.
    public var isAllowed: Bool?

    public init(of account: Account, _ level: ConsentLevel, isAllowed: Bool?) {
        self.account = account
        self.level = level
        self.isAllowed = isAllowed
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let known = try records.load(Consent.self, at: RecordKeys.consent(account))
        let before = known?.value ?? Consent()
        var consent = before
        switch level {
        case .everything: consent.everything = isAllowed
        case .app(let app):
            try checkName(app, "an app's identifier")
            consent.apps[app] = isAllowed
        case .conversation(let conversation):
            try checkName(conversation, "a conversation's identifier")
            consent.conversations[conversation] = isAllowed
        }
        guard consent != before else { return .answer(ChangeReceipt(sequence: nil, changed: 0)) }
        var edit = Edit()
        edit.records = [
            try .json(
                RecordKeys.consent(account), consent, expecting: known.map { .version($0.version) } ?? .absent),
            RecordEdit(RecordKeys.shelf(account), value: []),
        ]
        return .edit(edit, topics: [.shelf(account)]) { ChangeReceipt(sequence: $0.sequence, changed: 1) }
    }
}

/// What a person has said about automatic sharing.
public struct ReadConsent: RuledRequest {
    public static let name = "readConsent"
    public typealias Answer = Consent

    public var account: Account

    public init(of account: Account) {
        self.account = account
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        .answer(try records.load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent())
    }
}

/// What an attribution view shows of an item, and its menu.
public struct ReadAttribution: RuledRequest {
    public static let name = "readAttribution"
    public typealias Answer = AttributionDetails

    /// What the title of the entry that removes an item must contain.
    public static let removeWord = "Remove"

    public var account: Account
    public var url: URL
    /// The title of the entry that removes the item, with the word in it.
    public var removeTitle: String?

    public init(_ url: URL, of account: Account, removeTitle: String? = nil) {
        self.account = account
        self.url = url
        self.removeTitle = removeTitle
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try check(removeTitle, "a title")
        if let removeTitle, !removeTitle.localizedCaseInsensitiveContains(ReadAttribution.removeWord) {
            throw ServiceError(
                .malformedRequest, "the title “\(removeTitle)” does not contain the word \(ReadAttribution.removeWord)")
        }
        let (highlight, sharers) = try records.highlight(url, of: account, context)
        let replies = highlight.attributions.map { attribution in
            AttributionDetails.MenuAction(
                kind: .reply, title: "Reply to \(attribution.conversation.name ?? attribution.sharer.name)",
                conversation: attribution.conversation.identifier)
        }
        let remove = AttributionDetails.MenuAction(kind: .remove, title: removeTitle ?? "Remove", conversation: nil)
        return .answer(
            AttributionDetails(
                url: url, summary: attributionSummary(of: sharers), isPinned: highlight.isPinned,
                attributions: highlight.attributions, menu: replies + [remove]))
    }
}

/// “From Ana”, “From Ana and Bo”, “From Ana and 2 others”: each sharer once, the latest first.
private func attributionSummary(of sharers: [String]) -> String {
    var names: [String] = []
    for name in sharers where !names.contains(name) { names.append(name) }
    switch names.count {
    case 0: return ""
    case 1: return "From \(names[0])"
    case 2: return "From \(names[0]) and \(names[1])"
    default: return "From \(names[0]) and \(names.count - 1) others"
    }
}
