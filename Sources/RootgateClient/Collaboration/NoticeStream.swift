public import Collaboration
public import Core

/// Follows a feed page by page. The next page is requested when the caller asks for it.
public struct NoticeStream: AsyncSequence, Sendable {
    /// A page of notices.
    public typealias Element = NoticePage
    /// What ends a stream.
    public typealias Failure = ServiceError

    let client: RootgateClient
    let feed: Feed
    let after: UInt64

    /// Begins to follow the feed where the stream begins.
    public func makeAsyncIterator() -> Iterator { Iterator(client: client, feed: feed, after: after) }

    /// The place in a stream.
    public struct Iterator: AsyncIteratorProtocol {
        /// How long one query waits for its answer.
        private static let wait = Duration.seconds(20)

        /// Waits a moment after `busy`. Nothing is lost by asking again.
        ///
        /// Throws any other error, or `cancelled`.
        private static func pause(before error: ServiceError) async throws(ServiceError) {
            guard error.code == .busy else { throw error }
            do {
                try await Task.sleep(for: .milliseconds(Int.random(in: 50...250)))
            } catch {
                throw ServiceError(.cancelled, "the request was cancelled")
            }
        }

        let client: RootgateClient
        let feed: Feed
        /// Where to go on from, should the stream end.
        public private(set) var after: UInt64

        init(client: RootgateClient, feed: Feed, after: UInt64) {
            self.client = client
            self.feed = feed
            self.after = after
        }

        /// The next page with something in it.
        public mutating func next() async throws -> NoticePage? {
            try await next(isolation: nil)
        }

        /// The next page with something in it.
        ///
        /// Throws what the service throws, except `busy`: then it asks again after a short pause. Throws `cancelled`
        /// when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ServiceError) -> NoticePage? {
            while true {
                let query = ReadNotices(feed, after: after, waitMilliseconds: 20_000)
                do throws(ServiceError) {
                    let page = try await client.send(query, waiting: Iterator.wait)
                    after = page.next
                    if !page.notices.isEmpty { return page }
                } catch {
                    try await Iterator.pause(before: error)
                }
            }
        }
    }
}
