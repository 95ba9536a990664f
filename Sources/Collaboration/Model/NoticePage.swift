import Core
import Foundation

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
