public import Core
import Foundation

/// Tells the participants of a collaboration what happened: all events together, in this order.
public struct PostNotices: RuledRequest {
    public static let name = "postNotices"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// Of the participant who posts.
    public var grant: AccessGrant
    public var events: [HighlightEvent]

    public init(_ events: [HighlightEvent], on collaboration: CollaborationIdentifier, by grant: AccessGrant) {
        self.collaboration = collaboration
        self.grant = grant
        self.events = events
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try check(events.count, atMost: Limits.noticesPerPostMax, "notices")
        let (author, access) = try records.bearer(of: grant, in: collaboration, context)
        guard !events.isEmpty else { return .answer(ChangeReceipt(sequence: nil, changed: 0)) }
        for event in events {
            guard access.permission == .readWrite || !event.changesContent else {
                throw ServiceError(.notPermitted, "who may only read can't have changed the content")
            }
            if let reader = event.onlyReader { _ = try records.participant(reader, in: collaboration) }
        }
        var edit = Edit(collaboration)
        edit.records = access.expectations(of: author, in: collaboration)
        edit.records.append(
            try .json(
                RecordKeys.notices(collaboration),
                StoredPost(author: author, date: context.now, events: events), isSequenced: true))
        if let forgotten = try forgotten(context, records) { edit.removedRanges = [forgotten] }
        let count = events.count
        return .edit(edit, topics: [.collaboration(collaboration)]) {
            ChangeReceipt(sequence: $0.sequence, changed: count)
        }
    }

    /// Now and then, the posts that need not be kept: so many are behind them.
    private func forgotten(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> RecordRange? {
        guard context.random.bytes(1)[0] < 8 else { return nil }
        var range = RecordRange.beginning(with: RecordKeys.notices(collaboration))
        let kept = try records.records(in: range, limit: context.settings.noticeCount, isDescending: true)
        guard kept.hasMore, let oldest = kept.items.last else { return nil }
        range.end = oldest.key
        return range
    }
}

extension HighlightEvent {
    /// Whether it tells of something that needs the permission to write.
    fileprivate var changesContent: Bool {
        switch self {
        case .change(.edit), .persistence: true
        case .change(.comment), .membership, .mention: false
        }
    }
}

/// A page of a feed, from after a sequence on. With a time to wait, an empty page comes only when that has passed:
/// asking again and again with the page's `next` is a live stream, which loses and doubles nothing.
public struct ReadNotices: RuledRequest {
    public static let name = "readNotices"
    public typealias Answer = NoticePage

    public var feed: Feed
    /// The `next` of the page before; 0 for everything that is kept.
    public var after: UInt64
    /// After so many notices the page ends, with the last post whole.
    public var limit: Int
    /// How long the answer may wait for news.
    public var waitMilliseconds: Int?
    /// A sequence that must have been applied to what is read.
    public var atLeast: UInt64?

    public init(
        _ feed: Feed, after: UInt64 = 0, limit: Int = 256, waitMilliseconds: Int? = nil, atLeast: UInt64? = nil
    ) {
        self.feed = feed
        self.after = after
        self.limit = limit
        self.waitMilliseconds = waitMilliseconds
        self.atLeast = atLeast
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.noticesPerPageMax)
        let last = try records.lastSequence()
        try Requests.check(atLeast: max(atLeast ?? 0, after), last)
        var reading = FeedReading(context, limit: limit)
        var topics: [Topic] = []
        switch feed {
        case .collaboration(let collaboration):
            try reading.add(collaboration, for: nil, after: after, records)
            topics = [.collaboration(collaboration)]
        case .participant(let person, let collaboration):
            _ = try records.participant(person, in: collaboration)
            try reading.add(collaboration, for: person, after: after, records)
            topics = [.collaboration(collaboration)]
        case .account(let account):
            topics = [.account(account)]
            for (collaboration, person) in try records.links(of: account) {
                try reading.add(collaboration, for: person, after: after, records)
                topics.append(.collaboration(collaboration))
            }
        }
        let (notices, end) = try reading.finish(records)
        let page = NoticePage(notices: notices, next: end ?? last, hasMore: end != nil)
        if let waitMilliseconds, waitMilliseconds > 0, notices.isEmpty, end == nil {
            return .wait(
                topics: topics, milliseconds: min(waitMilliseconds, Limits.followMillisecondsMax), answer: page)
        }
        return .answer(page)
    }
}

extension RecordReader where Self: ~Copyable {
    /// Where an account takes part, and as whom.
    func links(
        of account: Account
    ) throws(ServiceError) -> [(collaboration: CollaborationIdentifier, person: PersonIdentity)] {
        let prefix = RecordKeys.linked(account)
        let page = try records(
            in: .beginning(with: prefix), limit: Limits.linksPerAccountMax, isDescending: false)
        return page.items.compactMap { record in
            let rest = record.key.dropFirst(prefix.count)
            guard let root = Digest(rest.suffix(Digest.byteCount)),
                let collaboration = CollaborationIdentifier(utf8: rest.dropLast(Digest.byteCount + 1))
            else { return nil }
            return (collaboration, PersonIdentity(rootHash: root))
        }
    }
}

/// Collects the notices of one page, from one collaboration or several.
private struct FeedReading {
    private struct Post {
        let sequence: UInt64
        let collaboration: CollaborationIdentifier
        let reader: PersonIdentity?
        let stored: StoredPost
    }

    private let context: RuleContext
    private let limit: Int
    private let oldest: Date
    private var posts: [Post] = []
    private var titles: [CollaborationIdentifier: String?] = [:]
    private var names: [[UInt8]: String?] = [:]

    init(_ context: RuleContext, limit: Int) {
        self.context = context
        self.limit = limit
        oldest = context.now.addingTimeInterval(-context.settings.noticeSeconds)
    }

    /// Adds the posts of a collaboration as `reader` sees them. A page's worth from each is enough: the page has the
    /// first ones of all.
    mutating func add(
        _ collaboration: CollaborationIdentifier, for reader: PersonIdentity?, after: UInt64,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        // A link from an account can outlast its collaboration.
        guard let stored = try records.load(StoredCollaboration.self, at: RecordKeys.collaboration(collaboration)) else {
            if reader == nil { _ = try records.collaboration(collaboration) }
            return
        }
        titles[collaboration] = stored.value.title
        var start = after
        if let reader, let cleared = try records.record(RecordKeys.cleared(collaboration, reader)) {
            start = max(start, try cleared.number())
        }
        let prefix = RecordKeys.notices(collaboration)
        var range = RecordRange.beginning(with: prefix)
        range.start = prefix + bigEndianBytes(start == .max ? start : start + 1)
        for record in try records.records(in: range, limit: limit + 1, isDescending: false).items {
            posts.append(
                Post(
                    sequence: record.version, collaboration: collaboration, reader: reader,
                    stored: try record.decoded(StoredPost.self)))
        }
    }

    /// The notices of the page, and the sequence where it ends; `nil` when there is nothing behind it.
    mutating func finish(
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> (notices: [Notice], end: UInt64?) {
        posts.sort { a, b in
            if a.sequence != b.sequence { return a.sequence < b.sequence }
            return a.reader?.rootHash ?? .zero < b.reader?.rootHash ?? .zero
        }
        var notices: [Notice] = []
        var told: Set<String> = []
        var taken = 0
        for (index, post) in posts.enumerated() {
            // A post that several of an account's identities see is read together.
            let isAgain = index > 0 && posts[index - 1].sequence == post.sequence
            if !isAgain {
                guard taken < limit, notices.count < limit else { return (notices, posts[index - 1].sequence) }
                taken += 1
            }
            guard post.stored.date >= oldest else { continue }
            for (place, event) in post.stored.events.enumerated() {
                if let only = event.onlyReader, only != post.reader { continue }
                guard told.insert("\(post.sequence).\(place)").inserted else { continue }
                notices.append(try notice(post, place, event, records))
            }
        }
        return (notices, nil)
    }

    private mutating func notice(
        _ post: Post, _ place: Int, _ event: HighlightEvent, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Notice {
        var person: PersonIdentity?
        switch event {
        case .mention(let named): person = named
        case .membership(_, let named): person = named
        case .change, .persistence: break
        }
        return Notice(
            collaboration: post.collaboration, sequence: post.sequence, place: place, date: post.stored.date,
            author: post.stored.author, event: event,
            sentence: event.sentence(
                author: try name(post.stored.author, post.collaboration, records),
                person: try person.flatMap { person throws(ServiceError) in
                    try name(person, post.collaboration, records)
                },
                title: titles[post.collaboration] ?? nil, isReader: person != nil && person == post.reader))
    }

    private mutating func name(
        _ person: PersonIdentity, _ collaboration: CollaborationIdentifier,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> String? {
        let key = RecordKeys.participant(collaboration, person)
        if let known = names[key] { return known }
        let name = try records.load(StoredParticipant.self, at: key)?.value.displayName
        names[key] = .some(name)
        return name
    }
}

extension RecordReader where Self: ~Copyable {
    /// The newest notices of a collaboration that `reader` may see, newest first.
    func recentNotices(
        of collaboration: CollaborationIdentifier, for reader: PersonIdentity?, count: Int, _ context: RuleContext
    ) throws(ServiceError) -> [Notice] {
        var range = RecordRange.beginning(with: RecordKeys.notices(collaboration))
        // Mentions of others are passed over: the last posts may hold less than is wanted.
        let newest = try records(in: range, limit: 4 * count, isDescending: true)
        guard let oldest = newest.items.last else { return [] }
        range.start = oldest.key
        var reading = FeedReading(context, limit: 4 * count * Limits.noticesPerPostMax)
        try reading.add(collaboration, for: reader, after: oldest.version - 1, self)
        return Array(try reading.finish(self).notices.suffix(count).reversed())
    }
}

/// Takes what was posted until now out of the feed of the participant who asks for it.
public struct ClearNotices: RuledRequest {
    public static let name = "clearNotices"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var grant: AccessGrant

    public init(of collaboration: CollaborationIdentifier, by grant: AccessGrant) {
        self.collaboration = collaboration
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let (reader, access) = try records.bearer(of: grant, in: collaboration, context)
        var edit = Edit(collaboration)
        edit.records = access.expectations(of: reader, in: collaboration)
        edit.records.append(
            RecordEdit(
                RecordKeys.cleared(collaboration, reader), value: bigEndianBytes(try records.lastSequence())))
        return .edit(edit, topics: []) { ChangeReceipt(sequence: $0.sequence, changed: 1) }
    }
}
