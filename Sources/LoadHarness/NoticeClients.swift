import Core
import Foundation
import Platform
import TLS
import Transport

/// The live followers of a run and the one that posts, on connections of their own.
///
/// They usually share the cores with the service, so they have to cost little. One thread serves all connections.
/// Requests are encoded beforehand except for one number, and requests of the same moment are sent together. Of a page
/// they read only the numbers that show whether a notice was lost.
final class NoticeClients: Sendable {
    /// A feed, the sequence behind which it is followed, and the post that is repeated there, as JSON.
    struct FeedStart: Sendable {
        let collaboration: CollaborationIdentifier
        let begin: UInt64
        let post: [UInt8]
    }

    private let dialer: KeyedDialer
    private let feeds: [FeedStart]
    private let tally: NoticeTally
    private let loop: EventLoop

    /// Throws `internalFault` when the system has no descriptors left.
    init(_ dialer: KeyedDialer, _ feeds: [FeedStart], _ tally: NoticeTally) throws(ServiceError) {
        (self.dialer, self.feeds, self.tally) = (dialer, feeds, tally)
        loop = try .startedForClient(name: "notice clients")
    }

    /// Connects, and sends the first queries of `count` followers, which take the feeds in turn. Blocks.
    ///
    /// Throws `connectionRefused`, `tlsRefused` or `internalFault`.
    func follow(_ count: Int, connections: Int) throws(ServiceError) {
        let queries = try feeds.map { feed throws(ServiceError) in try NoticeQuery(feed.collaboration) }
        var shares = [[Follower]](repeating: [], count: connections)
        for number in 0..<count {
            let feed = number % feeds.count
            shares[number % connections].append(
                Follower(query: queries[feed], feed: FollowedFeed(after: feeds[feed].begin)))
        }
        let (loop, tally) = (loop, tally)
        for followers in shares {
            let stream = try dialer.connect(milliseconds: 5000)
            Connection.start(stream, on: loop) { connection in
                let handler = FollowerConnection(connection, loop, followers, tally)
                loop.execute { handler.queryAll() }
                return handler
            }
        }
    }

    /// Connects, and posts `posts` times on each feed in turn, with up to `inFlight` posts unanswered, at no more than
    /// `perSecond`. Blocks until it has begun.
    ///
    /// Throws `connectionRefused` or `tlsRefused`.
    func post(_ posts: Int, inFlight: Int, perSecond: Double) throws(ServiceError) {
        let stream = try dialer.connect(milliseconds: 5000)
        let (loop, tally, bodies) = (loop, tally, feeds.map(\.post))
        Connection.start(stream, on: loop) { connection in
            let poster = NoticePoster(connection, bodies, posts: posts, inFlightMax: inFlight, tally)
            if perSecond.isFinite {
                let thread = Thread { NoticeClients.pace(poster, posts, perSecond, loop, tally) }
                thread.name = "notice pace"
                thread.start()
            } else {
                loop.execute { poster.allow(posts) }
            }
            return poster
        }
    }

    /// Sends posts when they are due, those of one millisecond together.
    private static func pace(
        _ poster: NoticePoster, _ posts: Int, _ perSecond: Double, _ loop: EventLoop, _ tally: NoticeTally
    ) {
        System.sharpenTimers()
        let begin = LoadRun.now
        var due = 1
        while !tally.isOver.load(ordering: .relaxed) {
            let count = due
            loop.execute { poster.allow(count) }
            guard due < posts else { return }
            let next = max(begin + UInt64(Double(due) / perSecond * 1e9), LoadRun.now + 1_000_000)
            while !tally.isOver.load(ordering: .relaxed), case let now = LoadRun.now, now < next {
                // Not long at a time: the run may be over before the next post is due.
                usleep(UInt32(min(next - now, 200_000_000) / 1000))
            }
            due = min(posts, max(due + 1, Int(Double(LoadRun.now - begin) / 1e9 * perSecond) + 1))
        }
    }

    /// Closes the connections; nothing is counted after this. Blocks.
    func stop() {
        tally.isOver.store(true, ordering: .relaxed)
        loop.stop()
    }
}
