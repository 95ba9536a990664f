public import Core
public import Foundation

/// Something that happened to shared content, to be told to its participants. Apple: `SWHighlightEvent`.
public enum HighlightEvent: Hashable, Sendable, Codable {
    /// Apple: `SWHighlightChangeEvent.Trigger`.
    public enum Change: String, Hashable, Sendable, Codable, CaseIterable { case edit, comment }
    /// Apple: `SWHighlightMembershipEvent.Trigger`.
    public enum Membership: String, Hashable, Sendable, Codable, CaseIterable {
        case addedCollaborator, removedCollaborator
    }
    /// Apple: `SWHighlightPersistenceEvent.Trigger`.
    public enum Persistence: String, Hashable, Sendable, Codable, CaseIterable { case created, deleted, renamed, moved }

    /// Apple: `SWHighlightChangeEvent`.
    case change(trigger: Change)
    /// Apple: `SWHighlightMembershipEvent`. `person`: the one who was added or removed; `nil` when the event does not
    /// name the person.
    case membership(trigger: Membership, person: PersonIdentity?)
    /// Apple: `SWHighlightMentionEvent`. Only the mentioned person sees it.
    case mention(person: PersonIdentity)
    /// Apple: `SWHighlightPersistenceEvent`.
    case persistence(trigger: Persistence)

    /// The only participant who sees the event; `nil` when all do.
    public var onlyReader: PersonIdentity? {
        if case .mention(let person) = self { person } else { nil }
    }

    /// The event in a sentence for people.
    ///
    /// `author` and `person`: their names, where they are known; `isReader`: whether the named person reads it.
    public func sentence(author: String?, person: String?, title: String?, isReader: Bool = false) -> String {
        let who = author ?? "Somebody"
        let what = title.map { "“\($0)”" } ?? "the shared content"
        let whom = isReader ? "you" : person ?? "somebody"
        switch self {
        case .change(.edit): return "\(who) edited \(what)"
        case .change(.comment): return "\(who) commented in \(what)"
        case .membership(.addedCollaborator, _): return "\(who) added \(whom) to \(what)"
        case .membership(.removedCollaborator, _): return "\(who) removed \(whom) from \(what)"
        case .mention: return "\(who) mentioned \(whom) in \(what)"
        case .persistence(let trigger): return "\(who) \(trigger.rawValue) \(what)"
        }
    }

    private enum Key: String, CodingKey { case kind, trigger, person }
    private enum Kind: String, Codable { case change, membership, mention, persistence }

    /// Reads `{"kind": "change" | "membership" | "mention" | "persistence", "trigger": ..., "person": ...}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        switch try container.decode(Kind.self, forKey: .kind) {
        case .change: self = .change(trigger: try container.decode(Change.self, forKey: .trigger))
        case .membership:
            self = .membership(
                trigger: try container.decode(Membership.self, forKey: .trigger),
                person: try container.decodeIfPresent(PersonIdentity.self, forKey: .person))
        case .mention: self = .mention(person: try container.decode(PersonIdentity.self, forKey: .person))
        case .persistence: self = .persistence(trigger: try container.decode(Persistence.self, forKey: .trigger))
        }
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .change(let trigger):
            try container.encode(Kind.change, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
        case .membership(let trigger, let person):
            try container.encode(Kind.membership, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
            try container.encodeIfPresent(person, forKey: .person)
        case .mention(let person):
            try container.encode(Kind.mention, forKey: .kind)
            try container.encode(person, forKey: .person)
        case .persistence(let trigger):
            try container.encode(Kind.persistence, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
        }
    }
}

/// An event as it stands in a feed.
public struct Notice: Hashable, Sendable, Codable {
    public let collaboration: CollaborationIdentifier
    /// The post's place in the change log.
    public let sequence: UInt64
    /// The event's place among those that were posted together, from 0.
    public let place: Int
    public let date: Date
    public let author: PersonIdentity
    public let event: HighlightEvent
    /// The event in a sentence for people.
    public let sentence: String

    /// Tells the notice from every other one of the service.
    public var identifier: String { "\(sequence).\(place)" }
}

/// The reader of a feed and the collaborations in it.
public enum Feed: Hashable, Sendable, Codable {
    /// What every participant of the collaboration sees.
    case collaboration(CollaborationIdentifier)
    /// What one participant sees of the collaboration: mentions of the person too.
    case participant(PersonIdentity, of: CollaborationIdentifier)
    /// What an account sees of all collaborations that it is linked to.
    case account(Account)

    private enum Key: String, CodingKey { case collaboration, participant, account }

    /// Reads `{"collaboration": ...}`, `{"collaboration": ..., "participant": ...}` or `{"account": ...}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        if let account = try container.decodeIfPresent(Account.self, forKey: .account) {
            self = .account(account)
            return
        }
        let collaboration = try container.decode(CollaborationIdentifier.self, forKey: .collaboration)
        let participant = try container.decodeIfPresent(PersonIdentity.self, forKey: .participant)
        self = participant.map { .participant($0, of: collaboration) } ?? .collaboration(collaboration)
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .collaboration(let collaboration):
            try container.encode(collaboration, forKey: .collaboration)
        case .participant(let person, let collaboration):
            try container.encode(collaboration, forKey: .collaboration)
            try container.encode(person, forKey: .participant)
        case .account(let account):
            try container.encode(account, forKey: .account)
        }
    }
}

/// One page of a feed, oldest notice first.
public struct NoticePage: Hashable, Sendable, Codable {
    public let notices: [Notice]
    /// The value of `after` for the next page, which begins exactly where this page ends.
    public let next: UInt64
    /// Whether there is more by now.
    public let hasMore: Bool

    package init(notices: [Notice], next: UInt64, hasMore: Bool) {
        self.notices = notices
        self.next = next
        self.hasMore = hasMore
    }

    private enum Key: String, CodingKey { case posts, next, hasMore }

    /// One post, as a page's JSON contains it.
    private struct Post: Codable {
        var sequence: UInt64
        var collaboration: CollaborationIdentifier
        var author: PersonIdentity
        var date: Date
        var notices: [PostedNotice]
    }

    /// Reads `{"posts": [{"sequence", "collaboration", "author", "date", "notices": [{"place", "event", "sentence"}]}],
    /// "next", "hasMore"}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let posts = try container.decode([Post].self, forKey: .posts)
        notices = posts.flatMap { post in
            post.notices.map { notice in
                Notice(
                    collaboration: post.collaboration, sequence: post.sequence, place: notice.place, date: post.date,
                    author: post.author, event: notice.event, sentence: notice.sentence)
            }
        }
        next = try container.decode(UInt64.self, forKey: .next)
        hasMore = try container.decode(Bool.self, forKey: .hasMore)
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var posts: [Post] = []
        for notice in notices {
            let posted = PostedNotice(place: notice.place, event: notice.event, sentence: notice.sentence)
            if posts.last?.sequence == notice.sequence {
                posts[posts.count - 1].notices.append(posted)
            } else {
                posts.append(
                    Post(
                        sequence: notice.sequence, collaboration: notice.collaboration, author: notice.author,
                        date: notice.date, notices: [posted]))
            }
        }
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(posts, forKey: .posts)
        try container.encode(next, forKey: .next)
        try container.encode(hasMore, forKey: .hasMore)
    }
}

/// One notice of a post, as JSON.
struct PostedNotice: Hashable, Codable {
    let place: Int
    let event: HighlightEvent
    let sentence: String
}
