package import Core
public import Foundation

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
        try checkLink(url, "url")
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
