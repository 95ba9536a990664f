package import Core
public import Foundation

/// Pins an item in all conversations or in one, or removes the pin. A pin is consent: a pinned item is on the shelf
/// even when nothing else is, and even when its conversation, its app or everything was refused. So the item need not
/// be on the shelf before: it suffices that it was shared with the person. An app can pin only what it sees already.
public struct PinHighlight: RuledRequest {
    public static let name = "pinHighlight"

    public struct Answer: Hashable, Codable, Sendable {
        public let receipt: ChangeReceipt
        /// Whether the person should be asked about automatic sharing: something is pinned now, and allowing
        /// `offeredLevel` would let further items appear by themselves.
        public let offersAutomaticSharing: Bool
        /// The level to ask about: the pinned item's app.
        public let offeredLevel: ConsentLevel?
    }

    public var account: Account
    /// The app that pins; see `ShelfScope`.
    public var app: String?
    public var everyApp: Bool?
    public var url: URL
    /// The conversation by its identifier, which no app knows; `nil`, without `handle` too: all conversations.
    public var conversation: String?
    /// The conversation by its handle.
    public var handle: ConversationHandle?
    public var isPinned: Bool

    public init(
        _ url: URL, of account: Account, for scope: ShelfScope, in conversation: String? = nil, isPinned: Bool = true
    ) {
        self.account = account
        (app, everyApp) = (scope.app, scope.everyApp)
        self.url = url
        self.conversation = conversation
        self.isPinned = isPinned
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        let view = try ShelfView(account, try ShelfScope(app: app, everyApp: everyApp), context, records)
        let shares = try shares(view, context, records)
        let level = isPinned ? try offer(shares, view.consent) : nil
        @Sendable func answer(_ sequence: UInt64?, _ changed: Int) -> Answer {
            Answer(
                receipt: ChangeReceipt(sequence: sequence, changed: changed), offersAutomaticSharing: level != nil,
                offeredLevel: level)
        }
        var edit = Edit()
        for share in shares where share.stored.head.isPinned != isPinned {
            var head = share.stored.head
            head.isPinned = isPinned
            edit.records.append(
                RecordEdit(
                    share.record.key, value: head.bytes + share.record.value.dropFirst(ShareHead.byteCount),
                    expecting: .version(share.record.version)))
        }
        guard !edit.records.isEmpty else {
            let checks = shares.map { RecordEdit.checking($0.record.key, expecting: .version($0.record.version)) }
            let empty = Edit.remembering(nil, checks)
            guard isPinned else { return .note(empty) { answer($0, 0) } }
            // A repetition must not bring a pin back that was removed meanwhile.
            return .edit(empty, topics: []) { answer($0.sequence, 0) }
        }
        let count = edit.records.count
        // Every share writes this record, and replacing it needs no space: so unpinning works on a full disk.
        edit.records.append(RecordEdit(RecordKeys.shelf(account), value: [], expecting: .present))
        return .edit(edit, topics: [.shelf(account)]) { answer($0.sequence, count) }
    }

    private struct Share {
        let record: StoredRecord
        let stored: StoredShare
    }

    /// The level to ask about: the app of the newest share for which the answer would matter.
    private func offer(_ shares: [Share], _ consent: Consent) throws(ServiceError) -> ConsentLevel? {
        for share in shares {
            if let level = consent.offer(for: try share.stored.app()) { return level }
        }
        return nil
    }

    /// The shares that the request is about, newest first.
    ///
    /// Throws `unknownHighlight` when there is none.
    private func shares(
        _ view: ShelfView, _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> [Share] {
        guard conversation == nil || view.scope == .everyApp && handle == nil else {
            throw ServiceError(
                .malformedRequest, "conversation is given with app or handle: an app names a conversation by its handle"
            )
        }
        let item = ShelfKeys.item(url, context)
        guard try !records.isHidden(item, from: account, isRemoval: !isPinned) else { throw view.unknown(url) }
        let wanted = conversation.map { shortNumber(ShelfKeys.short($0, context)) }
        let heads = try records.shareHeads(of: item, account, isRemoval: !isPinned) { head, conversation in
            guard wanted == nil || conversation == wanted else { return false }
            // Nothing that can't appear is pinned, but whatever was pinned can be unpinned.
            return view.scope == .everyApp ? head.counts || !isPinned : view.shows(head, in: conversation)
        }
        var found: [Share] = []
        for (key, _) in heads {
            guard let record = try records.record(key) else { continue }
            let stored = try record.share()
            if handle == nil || stored.handle == handle { found.append(Share(record: record, stored: stored)) }
        }
        guard !found.isEmpty else { throw view.unknown(url) }
        if isPinned || view.scope != .everyApp, try records.hasEnded(found.map(\.stored)) { throw view.unknown(url) }
        return found
    }
}
