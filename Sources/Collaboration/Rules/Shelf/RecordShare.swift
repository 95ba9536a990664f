package import Core
public import Foundation

/// Records that a link was shared in a conversation, on the shelves of the recipients.
public struct RecordShare: RuledRequest {
    public static let name = "recordShare"
    public typealias Answer = ChangeReceipt

    public var url: URL
    public var title: String?
    public var subtitle: String?
    public var thumbnail: Thumbnail?
    /// The bundle identifier of the app that opens the link.
    public var app: String
    public var sharer: Sharer
    public var conversation: Conversation
    /// `nil`: now.
    public var date: Date?
    /// The participants of the conversation on whose shelves it belongs.
    public var recipients: [ShareRecipient]

    public init(
        url: URL, title: String? = nil, subtitle: String? = nil, thumbnail: Thumbnail? = nil, app: String,
        sharer: Sharer, conversation: Conversation, date: Date? = nil,
        recipients: [ShareRecipient]
    ) {
        self.url = url
        self.title = title
        self.subtitle = subtitle
        self.thumbnail = thumbnail
        self.app = app
        self.sharer = sharer
        self.conversation = conversation
        self.date = date
        self.recipients = recipients
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkFields()
        let collaboration = context.settings.collaboration(ofAnySpelling: url)
        if let collaboration, try !records.isStarted(collaboration) {
            throw ServiceError(.unknownCollaboration, "the link leads to \(collaboration), which is not shared")
        }
        let image = try image(context)
        let link = try thumbnailLink()
        let text = try StoredShare.Text(self, image?.reference ?? link)
        let item = ShelfKeys.item(url, context)
        let place = ShelfKeys.short(conversation.identifier, context)
        // A later date is moved to tomorrow: otherwise that share would stay the latest one.
        let milliseconds = context.milliseconds(of: min(date ?? context.now, context.now.addingTimeInterval(86_400)))
        let opener = shortNumber(ShelfKeys.short(app, context))
        var edit = Edit()
        var topics: [Topic] = []
        var thumbnails = ThumbnailEdits()
        var taking: [[UInt8]] = []
        var later: [RecordEdit] = []
        var seen: [Account: ShareRecipient] = [:]
        for (index, recipient) in recipients.enumerated() {
            if let first = seen.updateValue(recipient, forKey: recipient.account) {
                guard first == recipient else {
                    throw ServiceError(
                        .malformedRequest, "recipients[\(index)] is an account of the list again, with other values")
                }
                continue
            }
            let key = ShelfKeys(recipient.account).share(item, place)
            let known = try records.record(key)
            let before = try known?.share()
            // Only the latest share of a conversation counts: an older one changes nothing.
            if let known, let before, before.head.milliseconds > milliseconds {
                later.append(.checking(key, expecting: .version(known.version)))
                continue
            }
            if before?.thumbnail != image?.hash {
                if let old = before?.thumbnail { thumbnails.leave(old, key) }
                if image != nil { taking.append(key) }
            }
            // A pin is consent to one app: it does not let another app see the link.
            let isPinned = before.map { $0.head.isPinned && $0.head.app == opener } ?? false
            let head = ShareHead(
                milliseconds: milliseconds, isPinned: isPinned, isGroup: conversation.isGroup,
                knowsSomebody: recipient.knowsSomebody, hasThumbnail: image != nil,
                leadsToCollaboration: collaboration != nil, app: opener)
            let share = StoredShare(
                head: head, handle: try handle(recipient.account, place, context, records, &edit),
                thumbnail: image?.hash, collaboration: collaboration, text)
            edit.records += [
                RecordEdit(key, value: share.bytes, expecting: known.map { .version($0.version) } ?? .absent),
                RecordEdit(RecordKeys.shelf(recipient.account), value: []),
            ]
            if let collaboration {
                edit.records.append(
                    RecordEdit(RecordKeys.shelfOfLink(collaboration, recipient.account), value: []))
            }
            topics.append(.shelf(recipient.account))
        }
        guard !topics.isEmpty else { return .noted(nil, later) }
        if let collaboration {
            edit.records.append(.checking(RecordKeys.collaboration(collaboration), expecting: .present))
        }
        if let image { try thumbnails.take(image.hash, image.bytes, taking, records) }
        try thumbnails.finish(records)
        edit.records += thumbnails.records
        return .change(edit, topics: topics, count: topics.count)
    }

    private func checkFields() throws(ServiceError) {
        try checkLimit(recipients.count, Limits.recipientsPerShareMax, "recipients")
        try checkLink(url, "url")
        try check(title, "title")
        try check(subtitle, "subtitle")
        try check(sharer.name, "sharer.name")
        try checkAvatar()
        try check(conversation.name, "conversation.name")
        try checkIdentifier(conversation.identifier, "conversation.identifier")
        try checkIdentifier(app, "app")
    }

    /// Throws unless the avatar is a text, and a link of the web if it is a link of any kind: what may have a scheme
    /// is.
    private func checkAvatar() throws(ServiceError) {
        try check(sharer.avatar, "sharer.avatar")
        guard let avatar = sharer.avatar, avatar.contains(":"), WebLink(avatar) == nil else { return }
        throw ServiceError(
            .malformedRequest, "sharer.avatar is neither a link of the web nor a name, which has no colon")
    }

    /// The thumbnail's link, if it is one.
    private func thumbnailLink() throws(ServiceError) -> ThumbnailReference? {
        guard case .link(let url)? = thumbnail else { return nil }
        try checkLink(url, "thumbnail.url")
        return .link(url)
    }

    private struct Image {
        let bytes: [UInt8]
        let hash: Digest
        let reference: ThumbnailReference
    }

    /// The thumbnail's bytes, if they are given. An answer states their format, so it must be theirs.
    private func image(_ context: RuleContext) throws(ServiceError) -> Image? {
        guard case .image(let bytes, let type)? = thumbnail else { return nil }
        try checkLimit(bytes.count, Limits.thumbnailBytesMax, "bytes of a thumbnail")
        guard ImageType(of: bytes) == type else {
            throw ServiceError(.malformedRequest, "thumbnail.data is not \(type.rawValue), as thumbnail.mediaType says")
        }
        let hash = context.sha256(bytes)
        return Image(bytes: bytes, hash: hash, reference: .stored(hash: hash, type, byteCount: bytes.count))
    }

    /// The handle of the conversation for an account and the app: random, and made with the app's first share there.
    private func handle(
        _ account: Account, _ place: [UInt8], _ context: RuleContext,
        _ records: borrowing some RecordReader & ~Copyable, _ edit: inout Edit
    ) throws(ServiceError) -> ConversationHandle {
        let key = RecordKeys.handle(account, place, ShelfKeys.short(app, context))
        let known = try records.record(key)?.value
        let bytes = known ?? context.random.nameBytes()
        if known == nil { edit.records.append(RecordEdit(key, value: bytes, expecting: .absent)) }
        guard let handle = ConversationHandle(bytes: bytes) else {
            throw ServiceError(.storageDamaged, "the handle of a conversation is damaged")
        }
        return handle
    }
}
