public import Core
import Foundation

/// Posts events for the participants of a collaboration: all together, in this order.
public struct PostNotices: RuledRequest {
    public static let name = "postNotices"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// The grant of the participant who posts.
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
        try checkLimit(events.count, Limits.noticesPerPostMax, "notices")
        let (author, access) = try records.bearer(of: grant, in: collaboration, context)
        guard !events.isEmpty else { return .unchanged }
        for event in events {
            guard access.permission == .readWrite || !event.changesContent else {
                throw ServiceError(.notPermitted, "a participant who may only read can't report changes of the content")
            }
            if let reader = event.onlyReader { _ = try records.participant(reader, in: collaboration) }
        }
        var edit = Edit(collaboration)
        edit.records = access.expectations(of: author, in: collaboration)
        let title = try records.collaboration(collaboration).value.title
        var names: [PersonIdentity: String?] = [:]
        let post = try StoredPost.bytes(
            of: events, by: author, on: collaboration, title: title, at: context.now
        ) { person throws(ServiceError) in
            if let known = names[person] { return known }
            let key = RecordKeys.participant(collaboration, person)
            let name = try records.load(StoredParticipant.self, at: key)?.value.displayName
            names[person] = .some(name)
            return name
        }
        edit.records.append(RecordEdit(RecordKeys.notices(collaboration), isSequenced: true, value: post))
        if let forgotten = try forgotten(context, records) { edit.removedRanges = [forgotten] }
        let count = events.count
        return .change(edit, topics: [.collaboration(collaboration)], count: count)
    }

    /// At random in one of 32 posts: the range of posts to delete, which are all but the newest `noticeCount`.
    private func forgotten(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> RecordRange? {
        guard context.random.bytes(1)[0] < 8 else { return nil }
        var range = RecordRange.beginning(with: RecordKeys.notices(collaboration))
        var count = 0
        try records.visitRecords(in: range) { _, _ in
            count += 1
            return true
        }
        var surplus = count - context.settings.noticeCount
        guard surplus > 0 else { return nil }
        try records.visitRecords(in: range) { key, _ in
            surplus -= 1
            if surplus < 0 { range.end = Array(key) }
            return surplus >= 0
        }
        return range
    }
}

extension HighlightEvent {
    /// Whether the event reports something that needs the permission to write.
    fileprivate var changesContent: Bool {
        switch self {
        case .change(.edit), .persistence: true
        case .change(.comment), .membership, .mention: false
        }
    }
}

/// A page of a feed: the posts after a sequence. With `waitMilliseconds` the answer waits for a post for that long
/// before it is an empty page. Repeating the query with each page's `next` follows the feed without gaps or duplicates.
public struct ReadNotices: RuledRequest {
    public static let name = "readNotices"
    package static let isQuery = true
    public typealias Answer = NoticePage

    public var feed: Feed
    /// The `next` of the page before; 0 for everything that is kept.
    public var after: UInt64
    /// The page ends after the post that contains this number of notices.
    public var limit: Int
    /// How long the answer may wait for a post.
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
        func page(_ json: [UInt8]) throws(ServiceError) -> NoticePage { try JSON.decode(NoticePage.self, from: json) }
        switch try decideEncoded(context, records) {
        case .answer(let json): return .answer(try page(json))
        case .wait(let topics, let milliseconds, let json):
            return .wait(topics: topics, milliseconds: milliseconds, answer: try page(json))
        case .edit: throw ServiceError(.internalFault, "reading a feed changes nothing")
        }
    }

    /// Puts the page together from the posts' own bytes.
    package func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision {
        try checkPage(limit, Limits.noticesPerPageMax)
        let last = try records.lastSequence()
        try checkSequence(max(atLeast ?? 0, after), last: last)
        var reading = FeedReading(context, limit: limit)
        var topics: [Topic] = []
        switch feed {
        case .collaboration(let collaboration):
            guard try reading.add(collaboration, for: nil, after: after, records) else {
                throw ServiceError(.unknownCollaboration, "no collaboration \(collaboration) was started")
            }
            topics = [.collaboration(collaboration)]
        case .participant(let person, let collaboration):
            guard try records.record(RecordKeys.defaultPermission(collaboration)) != nil else {
                throw ServiceError(.unknownCollaboration, "no collaboration \(collaboration) was started")
            }
            _ = try records.participant(person, in: collaboration)
            try reading.add(collaboration, for: person, after: after, records)
            topics = [.collaboration(collaboration)]
        case .account(let account):
            topics = [.account(account)]
            for (collaboration, person) in try records.links(of: account) {
                // A link can be left over from a collaboration that has ended.
                try reading.add(collaboration, for: person, after: after, records)
                topics.append(.collaboration(collaboration))
            }
        }
        let page = try reading.finish(records)
        var json = Array(#"{"hasMore":\#(page.end != nil),"next":\#(page.end ?? last),"posts":["#.utf8)
        page.append(to: &json)
        json += Array("]}".utf8)
        if let waitMilliseconds, waitMilliseconds > 0, page.noticeCount == 0, page.end == nil {
            return .wait(
                topics: topics, milliseconds: min(waitMilliseconds, Limits.followMillisecondsMax), answer: json)
        }
        return .answer(json)
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
    /// What some reader sees of a post.
    struct Post {
        let sequence: UInt64
        let members: ArraySlice<UInt8>
        /// In the order of the events.
        var texts: [StoredPost.Text]
    }

    /// The posts of a page.
    struct Page {
        var posts: [Post] = []
        var noticeCount = 0
        /// The sequence where the page ends; `nil` when there is nothing behind it.
        var end: UInt64?

        /// Appends the posts as JSON objects, separated by commas.
        func append(to json: inout [UInt8]) {
            for (index, post) in posts.enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                json.append(UInt8(ascii: "{"))
                json += post.members
                json += Array(#","sequence":\#(post.sequence),"notices":["#.utf8)
                for (place, text) in post.texts.enumerated() {
                    if place > 0 { json.append(UInt8(ascii: ",")) }
                    json += text.json
                }
                json += Array("]}".utf8)
            }
        }
    }

    /// A post that may be on the page.
    private struct Candidate {
        let sequence: UInt64
        /// Of the collaboration, in `places`.
        let place: Int
        let reader: PersonIdentity?
    }

    private let limit: Int
    private let oldest: UInt64
    private var places: [[UInt8]] = []
    private var candidates: [Candidate] = []

    init(_ context: RuleContext, limit: Int) {
        self.limit = limit
        let seconds = context.now.timeIntervalSince1970 - context.settings.noticeSeconds
        oldest = UInt64(max(0, (seconds * 1000).rounded()))
    }

    /// Adds the posts of a collaboration as `reader` sees them. Returns false when there is no such collaboration. It
    /// reads at most as many posts as a page holds, because a page holds the oldest posts of all collaborations.
    @discardableResult
    mutating func add(
        _ collaboration: CollaborationIdentifier, for reader: PersonIdentity?, after: UInt64,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Bool {
        guard try records.record(RecordKeys.defaultPermission(collaboration)) != nil else { return false }
        var start = after
        if let reader, let cleared = try records.record(RecordKeys.cleared(collaboration, reader)) {
            start = max(start, try cleared.number())
        }
        let prefix = RecordKeys.notices(collaboration)
        var range = RecordRange.beginning(with: prefix)
        range.start = prefix + bigEndianBytes(start == .max ? start : start + 1)
        let place = places.count
        places.append(prefix)
        var found: [Candidate] = []
        try records.visitRecords(in: range) { key, _ in
            let sequence = key.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
            found.append(Candidate(sequence: sequence, place: place, reader: reader))
            return found.count <= limit
        }
        candidates += found
        // An account may take part in thousands of collaborations, of which few have new posts.
        if candidates.count > 8 * (limit + 1) { sortAndCut() }
        return true
    }

    /// Sorts the candidates and drops those that can't be on the page. It keeps `limit` + 1 posts, each for every
    /// identity that an account has in the collaboration.
    private mutating func sortAndCut() {
        candidates.sort { ($0.sequence, $0.place) < ($1.sequence, $1.place) }
        var sequences = 0
        var last: UInt64 = 0
        let end = candidates.firstIndex { candidate in
            if candidate.sequence != last {
                sequences += 1
                last = candidate.sequence
            }
            return sequences > limit + 1
        }
        if let end { candidates.removeSubrange(end...) }
    }

    /// The page: the first posts of all, each whole.
    mutating func finish(_ records: borrowing some RecordReader & ~Copyable) throws(ServiceError) -> Page {
        sortAndCut()
        var page = Page()
        var taken = 0
        var bytes = 0
        var last: UInt64 = 0
        for candidate in candidates {
            let isAgain = candidate.sequence == last
            if !isAgain {
                guard taken < limit, page.noticeCount < limit, bytes < Limits.noticesPageBytesMax else {
                    page.end = last
                    return page
                }
                taken += 1
                last = candidate.sequence
            }
            guard let (post, byteCount) = try post(candidate, records) else { continue }
            bytes += byteCount
            // A post that several identities of an account see stands once on the page, with the texts of all of them.
            if isAgain {
                page.merge(post)
            } else if !post.texts.isEmpty {
                page.posts.append(post)
                page.noticeCount += post.texts.count
            }
        }
        return page
    }

    /// The last posts of one collaboration that hold `count` notices, each whole.
    func newest(_ count: Int, _ records: borrowing some RecordReader & ~Copyable) throws(ServiceError) -> Page {
        var page = Page()
        for candidate in candidates.reversed() where page.noticeCount < count {
            guard let (post, _) = try post(candidate, records), !post.texts.isEmpty else { continue }
            page.posts.insert(post, at: 0)
            page.noticeCount += post.texts.count
        }
        return page
    }

    /// The part of a post that a reader may see, and the post's bytes; `nil` when the post is too old.
    private func post(
        _ candidate: Candidate, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> (post: Post, byteCount: Int)? {
        let key = places[candidate.place] + bigEndianBytes(candidate.sequence)
        guard let record = try records.record(key) else { return nil }
        let stored = try StoredPost(record.value)
        guard stored.milliseconds >= oldest else { return nil }
        let post = Post(
            sequence: candidate.sequence, members: stored.members,
            texts: stored.texts.filter { $0.audience.includes(candidate.reader) })
        return (post, record.value.count)
    }
}

extension FeedReading.Page {
    /// Merges the part of a post that another identity of the same account may see. A text that addresses the reader
    /// replaces a text about the reader.
    fileprivate mutating func merge(_ other: FeedReading.Post) {
        guard var post = posts.last, post.sequence == other.sequence else {
            guard !other.texts.isEmpty else { return }
            posts.append(other)
            noticeCount += other.texts.count
            return
        }
        noticeCount -= post.texts.count
        for text in other.texts {
            guard let index = post.texts.firstIndex(where: { $0.place == text.place }) else {
                post.texts.append(text)
                continue
            }
            if case .only = text.audience { post.texts[index] = text }
        }
        post.texts.sort { $0.place < $1.place }
        noticeCount += post.texts.count
        posts[posts.count - 1] = post
    }
}

extension RecordReader where Self: ~Copyable {
    /// The newest notices of a collaboration that `reader` may see, newest first.
    func recentNotices(
        of collaboration: CollaborationIdentifier, for reader: PersonIdentity?, count: Int, _ context: RuleContext
    ) throws(ServiceError) -> [Notice] {
        let range = RecordRange.beginning(with: RecordKeys.notices(collaboration))
        // Mentions of others are left out, so more posts than `count` are read.
        let newest = try records(in: range, limit: 4 * count, isDescending: true)
        guard let oldest = newest.items.last else { return [] }
        var reading = FeedReading(context, limit: 4 * count)
        try reading.add(collaboration, for: reader, after: oldest.version - 1, self)
        var json = Array(#"{"hasMore":false,"next":0,"posts":["#.utf8)
        try reading.newest(count, self).append(to: &json)
        json += Array("]}".utf8)
        let notices = try JSON.decode(NoticePage.self, from: json).notices
        return notices.suffix(count).reversed()
    }
}

/// Clears the feed of the participant whose grant it is: posts until now are no longer listed there.
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
        let key = RecordKeys.cleared(collaboration, reader)
        let before = try records.record(key)
        edit.records.append(
            RecordEdit(
                key, value: bigEndianBytes(try records.lastSequence()),
                expecting: before.map { .version($0.version) } ?? .absent))
        return .change(edit, topics: [], count: 1)
    }
}
