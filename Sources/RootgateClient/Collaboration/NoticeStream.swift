public import Collaboration
public import Core

/// Follows a feed page by page. The next page is requested when the caller asks for it.
public struct NoticeStream: AsyncSequence, Sendable {
    /// A page of notices.
    public typealias Element = NoticePage
    /// The error that ends a stream.
    public typealias Failure = ServiceError

    let client: RootgateClient
    let feed: Feed
    let after: UInt64
    let language: String?

    /// An iterator whose first page begins after the stream's sequence.
    public func makeAsyncIterator() -> Iterator {
        Iterator(client: client, feed: feed, after: after, language: language)
    }

    /// The place in a stream.
    public struct Iterator: AsyncIteratorProtocol {
        /// How long one query waits for its answer.
        private static let wait = Duration.seconds(20)

        /// Sleeps for as long as `error` says when it is `busy`, at most as long as a query waits, and for 50 to 250
        /// milliseconds when it does not say.
        ///
        /// Throws every other error, or `cancelled` when the task is cancelled.
        private static func pause(before error: ServiceError) async throws(ServiceError) {
            guard error.code == .busy else { throw error }
            do {
                let pause = Duration.milliseconds(Int.random(in: 50...250))
                try await Task.sleep(for: error.retryAfter.map { Swift.min($0, wait) } ?? pause)
            } catch {
                throw ServiceError(.cancelled, "the request was cancelled")
            }
        }

        let client: RootgateClient
        let feed: Feed
        let language: String?
        /// The sequence after which the next page begins. A new stream can begin with it when this one has ended.
        public private(set) var after: UInt64

        init(client: RootgateClient, feed: Feed, after: UInt64, language: String?) {
            self.client = client
            self.feed = feed
            self.after = after
            self.language = language
        }

        /// The next page that is not empty. Waits until there is one.
        public mutating func next() async throws -> NoticePage? {
            try await next(isolation: nil)
        }

        /// The next page that is not empty. Waits until there is one. After `busy` it repeats the query after a short
        /// pause.
        ///
        /// Throws every other error of the service, and `cancelled` when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ServiceError) -> NoticePage? {
            while true {
                let query = ReadNotices(feed, after: after, waitMilliseconds: 20_000, language: language)
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
