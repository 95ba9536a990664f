package import Core
import Foundation

/// A page of a feed: the posts after a sequence. With `waitMilliseconds` the answer waits for a post for that long
/// before it is an empty page. Repeating the query with each page's `next` follows the feed without gaps or duplicates.
public struct ReadNotices: RuledRequest {
    public static let name = "readNotices"
    package static let isQuery = true
    package var follows: Bool { (waitMilliseconds ?? 0) > 0 }
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
    /// The language of the sentences, a tag of BCP 47; `nil`: English.
    public var language: String?

    public init(
        _ feed: Feed, after: UInt64 = 0, limit: Int = 256, waitMilliseconds: Int? = nil, atLeast: UInt64? = nil,
        language: String? = nil
    ) {
        self.feed = feed
        self.after = after
        self.limit = limit
        self.waitMilliseconds = waitMilliseconds
        self.atLeast = atLeast
        self.language = language
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        func page(_ json: [UInt8]) throws(ServiceError) -> NoticePage { try JSON.decode(NoticePage.self, from: json) }
        switch try decideEncoded(context, records) {
        case .answer(let json): return .answer(try page(json))
        case .wait(let topics, let milliseconds, let json):
            return .wait(topics: topics, milliseconds: milliseconds, answer: try page(json))
        case .edit, .note: throw ServiceError(.internalFault, "reading a feed changes nothing")
        }
    }

    /// Puts the page together from the posts' own bytes and the sentences.
    package func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision {
        try checkPage(limit, Limits.noticesPerPageMax)
        try checkWait(waitMilliseconds)
        try checkLanguage(language)
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
            _ = try records.presentParticipant(person, in: collaboration)
            // Clearing concerns this feed alone: not the account's, and not the details.
            let cleared = try records.record(RecordKeys.cleared(collaboration, person))?.number() ?? 0
            try reading.add(collaboration, for: person, after: max(after, cleared), records)
            topics = [.collaboration(collaboration)]
        case .account(let account):
            topics = [.account(account)]
            for (collaboration, person) in try records.links(of: account) {
                if try records.isInSet(person, of: collaboration) {
                    try reading.add(collaboration, for: person, after: after, records)
                }
                topics.append(.collaboration(collaboration))
            }
        }
        let page = try reading.finish(records)
        var json = Array(#"{"hasMore":\#(page.end != nil),"next":\#(page.end ?? last),"posts":["#.utf8)
        page.append(in: .of(language), to: &json)
        json += Array("]}".utf8)
        if let waitMilliseconds, waitMilliseconds > 0, page.noticeCount == 0, page.end == nil {
            return .wait(topics: topics, milliseconds: waitMilliseconds, answer: json)
        }
        return .answer(json)
    }
}
