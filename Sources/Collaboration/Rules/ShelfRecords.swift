import Core
import Foundation

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
struct Signals {
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
struct ShareHead {
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
struct StoredShare: Codable {
    var url: URL
    var title: String?
    var app: String
    var sharer: Sharer
    var conversation: Conversation
    var date: Date
}

/// The keys and fingerprints of an account's shelf.
struct ShelfKeys {
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
struct Refusals {
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

func shortNumber(_ bytes: some Collection<UInt8>) -> UInt64 {
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { $0.copyBytes(from: bytes.prefix(8)) }
    return number
}

extension RuleContext {
    func milliseconds(of date: Date) -> UInt64 {
        UInt64(max(0, min((date.timeIntervalSince1970 * 1000).rounded(), 9e15)))
    }
}

extension RecordReader where Self: ~Copyable {
    /// An item with its attributions.
    func highlight(
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
    func shareHeads(
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
    func shares(
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
    func isHidden(_ item: [UInt8], from account: Account) throws(ServiceError) -> Bool {
        try record(ShelfKeys(account).signals(item))?.value.withRawBytes { Signals($0) }?.isHidden ?? false
    }

    /// The item of a link as the account sees it, with the names of all who shared it, the latest first; or
    /// `unknownHighlight`.
    func highlight(
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
