import Core
import Foundation

// The records of a shelf, under `h account 0`:
//
//     item (16) 0000000000000000     what the person did with the item: hidden (1), zero (3), views (4),
//                                    interactions (4), shown (4), last of them in milliseconds (8)
//     item (16) conversation (8)     the latest share in a conversation: time in milliseconds (8), flags (1: 1 pinned,
//                                    2 group, 4 knows somebody), zero (7), app (8), then the share as JSON members:
//                                    length (2) and those of the item, those of the attribution
//
// Item, conversation and app are the first bytes of the SHA-256 of the link, the conversation's identifier and the
// app's. Numbers are little-endian. Ranking a shelf reads the packed bytes only; a page joins the stored JSON members.

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
        precondition(bytes.count == Signals.byteCount, "signals are not as long as their layout")
        return bytes
    }

    /// The score by which the suggested item is chosen. Interactions weigh most. Being shown counts at most 4, and the
    /// score is 0 without a view or an interaction.
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
            milliseconds: milliseconds, isPinned: flags & 1 != 0, isGroup: flags & 2 != 0,
            knowsSomebody: flags & 4 != 0,
            app: app)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendInteger(milliseconds)
        bytes.append((isPinned ? 1 : 0) | (isGroup ? 2 : 0) | (knowsSomebody ? 4 : 0))
        bytes += [UInt8](repeating: 0, count: 7)
        bytes.appendInteger(app)
        precondition(bytes.count == ShareHead.byteCount, "a share's head is not as long as its layout")
        return bytes
    }

    /// A share in a group conversation counts only when the person knows somebody there.
    var counts: Bool { !isGroup || knowsSomebody }
}

/// The latest share of an item in a conversation: the part for people, as JSON members without braces.
struct ShareText {
    let head: ShareHead
    /// `"app": ..., "title": ..., "url": ...`.
    let item: ArraySlice<UInt8>
    /// `"conversation": ..., "date": ..., "sharer": ...`.
    let attribution: ArraySlice<UInt8>

    private struct Item: Encodable {
        let url: URL
        let title: String?
        let app: String
    }

    private struct Shared: Codable {
        let sharer: Sharer
        let conversation: Conversation
        let date: Date
    }

    /// The bytes after the head in a record.
    static func bytes(
        url: URL, title: String?, app: String, sharer: Sharer, conversation: Conversation, date: Date
    ) throws(ServiceError) -> [UInt8] {
        let item = try JSON.encode(Item(url: url, title: title, app: app)).dropFirst().dropLast()
        let shared = try JSON.encode(Shared(sharer: sharer, conversation: conversation, date: date))
            .dropFirst().dropLast()
        var bytes: [UInt8] = []
        bytes.appendInteger(UInt16(item.count))
        return bytes + item + shared
    }

    /// Throws `storageDamaged` when the record is something else.
    init(_ record: StoredRecord, _ head: ShareHead) throws(ServiceError) {
        let text = record.value.dropFirst(ShareHead.byteCount)
        let length = text.prefix(2).reversed().reduce(0) { $0 << 8 | Int($1) }
        guard text.count >= 2 + length else { throw ServiceError(.storageDamaged, "the record of a share is damaged") }
        self.head = head
        item = text.dropFirst(2).prefix(length)
        attribution = text.dropFirst(2 + length)
    }

    func decoded() throws(ServiceError) -> Attribution {
        let json = [UInt8(ascii: "{")] + attribution + [UInt8(ascii: "}")]
        let shared = try StoredRecord(key: [], version: 0, value: json).decoded(Shared.self)
        return Attribution(
            sharer: shared.sharer, conversation: shared.conversation, date: shared.date, isPinned: head.isPinned)
    }
}

/// The keys and fingerprints of an account's shelf.
struct ShelfKeys {
    /// Bytes of an item's fingerprint, and of a conversation's or an app's.
    static let itemBytes = 16
    static let conversationBytes = 8

    let prefix: [UInt8]

    init(_ account: Account) {
        prefix = RecordKeys.items(account)
    }

    static func item(_ url: URL, _ context: RuleContext) -> [UInt8] {
        context.fingerprint(url.absoluteString, count: itemBytes)
    }

    static func short(_ text: String, _ context: RuleContext) -> [UInt8] {
        context.fingerprint(text, count: conversationBytes)
    }

    /// The key of the signals, which has zeros in place of a conversation.
    func signals(_ item: [UInt8]) -> [UInt8] {
        share(item, [UInt8](repeating: 0, count: ShelfKeys.conversationBytes))
    }

    /// The place of the latest share in a conversation.
    func share(_ item: [UInt8], _ conversation: [UInt8]) -> [UInt8] {
        precondition(item.count == ShelfKeys.itemBytes, "an item is named by 16 bytes")
        precondition(conversation.count == ShelfKeys.conversationBytes, "a conversation is named by 8 bytes")
        return prefix + item + conversation
    }

    /// Signals and shares of an item.
    func all(_ item: [UInt8]) -> RecordRange {
        precondition(item.count == ShelfKeys.itemBytes, "an item is named by 16 bytes")
        return RecordRange(
            prefix + item, prefix + item + [UInt8](repeating: 0xff, count: ShelfKeys.conversationBytes + 1))
    }
}

/// The conversations and apps that an account has refused, by fingerprint. Ranking a shelf uses them.
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
    assert(bytes.count == ShelfKeys.conversationBytes, "a conversation or an app is named by 8 bytes")
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
    /// Appends an item with its latest attributions as a JSON object; the item has a share that counts.
    func append(
        _ item: UInt128, of account: Account, _ refusals: Refusals, isSuggested: Bool, to json: inout [UInt8]
    ) throws(ServiceError) {
        let heads = try countingHeads(of: withUnsafeBytes(of: item) { Array($0) }, account, refusals)
        var shares: [ShareText] = []
        for (key, head) in heads.prefix(Limits.attributionsPerItemMax) {
            guard let record = try record(key) else { continue }
            shares.append(try ShareText(record, head))
        }
        guard let newest = shares.first else {
            throw ServiceError(.storageDamaged, "an item of a shelf has no share")
        }
        json.append(UInt8(ascii: "{"))
        json += newest.item
        json += Array(#","attributions":["#.utf8)
        for (place, share) in shares.enumerated() {
            if place > 0 { json.append(UInt8(ascii: ",")) }
            json.append(UInt8(ascii: "{"))
            json += share.attribution
            json += Array(#","isPinned":\#(share.head.isPinned)}"#.utf8)
        }
        let isPinned = heads.contains { $0.head.isPinned }
        json += Array(
            #"],"date":\#(newest.head.milliseconds),"isPinned":\#(isPinned),"isSuggested":\#(isSuggested)}"#.utf8)
    }

    /// The keys and heads of the item's shares that count for the account, newest first.
    private func countingHeads(
        of item: [UInt8], _ account: Account, _ refusals: Refusals
    ) throws(ServiceError) -> [(key: [UInt8], head: ShareHead)] {
        try shareHeads(of: item, account) { head, conversation in
            head.counts && (head.isPinned || refusals.allows(app: head.app, conversation: conversation))
        }
    }

    /// The keys and heads of the item's shares that `isWanted` accepts, newest first, at most
    /// `conversationsPerItemMax`.
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
        // Equal times are ordered by the key, so that the order is always the same.
        found.sort { a, b in
            if a.head.milliseconds != b.head.milliseconds { return a.head.milliseconds > b.head.milliseconds }
            return b.key.lexicographicallyPrecedes(a.key)
        }
        return Array(found.prefix(Limits.conversationsPerItemMax))
    }

    /// The shares of an item that count for the account, newest first.
    private func shares(
        of item: [UInt8], _ account: Account, _ refusals: Refusals
    ) throws(ServiceError) -> [Attribution] {
        var attributions: [Attribution] = []
        for (key, head) in try countingHeads(of: item, account, refusals) {
            guard let record = try record(key) else { continue }
            attributions.append(try ShareText(record, head).decoded())
        }
        return attributions
    }

    /// Whether the account has removed the item.
    func isHidden(_ item: [UInt8], from account: Account) throws(ServiceError) -> Bool {
        try record(ShelfKeys(account).signals(item))?.value.withRawBytes { Signals($0) }?.isHidden ?? false
    }

    /// The shares of a link that count for the account, newest first.
    ///
    /// Throws `unknownHighlight` when there is none.
    func shares(
        of url: URL, _ account: Account, _ context: RuleContext
    ) throws(ServiceError) -> [Attribution] {
        let item = ShelfKeys.item(url, context)
        let unknown = ServiceError(.unknownHighlight, "\(url.absoluteString) is not on the shelf of \(account)")
        guard try !isHidden(item, from: account) else { throw unknown }
        let consent = try load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent()
        let shares = try shares(of: item, account, Refusals(consent, context))
        guard !shares.isEmpty else { throw unknown }
        return shares
    }
}
