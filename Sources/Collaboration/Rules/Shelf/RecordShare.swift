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
        try checkLink(url, "url")
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
