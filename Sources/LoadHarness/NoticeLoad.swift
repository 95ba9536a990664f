package import Core
import Foundation
import Identity
package import RootgateClient
import Synchronization

/// What came of a notice run.
package struct NoticeReport: Sendable {
    /// Notices posted, and how many should have reached their followers, and how many did.
    package var posted = 0
    package var expected = 0
    package var delivered = 0
    /// Notices that came twice, or out of order.
    package var misplaced = 0
    package var seconds = 0.0
    /// From before a post was sent to when a follower had its notices, in nanoseconds.
    package var latency = Histogram()

    package var postsPerSecond: Double { seconds > 0 ? Double(posted) / seconds : 0 }
    package var isComplete: Bool { delivered == expected && misplaced == 0 }
}

/// Followers of many collaborations, each live, and participants who post.
package final class NoticeLoad: Sendable {
    /// How a run is made up.
    package struct Plan: Sendable {
        package var collaborations = 100
        /// All of them, spread over the collaborations.
        package var followers = 1000
        package var connections = 8
        /// Events in one post, and posts in flight.
        package var batch = 8
        package var posters = 32

        package init() {}
    }

    private struct Room: Sendable {
        let collaboration: CollaborationIdentifier
        let grant: AccessGrant
    }

    private let plan: Plan
    private let clients: [RootgateClient]
    private let rooms: [Room]
    private let owner: Account

    /// Starts the collaborations, one participant each, who opens them.
    ///
    /// Throws what the service throws.
    package init(_ endpoint: Endpoint, _ plan: Plan) async throws(ServiceError) {
        self.plan = plan
        guard let owner = Account("load-\(MutationIdentifier.random())") else {
            throw ServiceError(.internalFault, "an account's name is not valid")
        }
        self.owner = owner
        var clients: [RootgateClient] = []
        for _ in 0..<max(1, plan.connections) {
            clients.append(try RootgateClient(endpoint, configuration: .init(requestTimeout: .seconds(60))))
        }
        self.clients = clients
        let person = Person(deviceCount: 1)
        var rooms: [Room] = []
        for number in 0..<max(1, plan.collaborations) {
            rooms.append(try await NoticeLoad.room(number, owner, person, clients[number % clients.count]))
        }
        self.rooms = rooms
    }

    private static func room(
        _ number: Int, _ owner: Account, _ person: Person, _ client: RootgateClient
    ) async throws(ServiceError) -> Room {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "\(number)"))
        metadata.title = "Document \(number)"
        let collaboration = try await client.send(
            PrepareCollaboration(owner: owner, metadata: metadata)
        ).collaborationIdentifier
        let identity = try person.identity(in: collaboration)
        _ = try await client.send(
            AddParticipants(
                [NewParticipant(PersonIdentity(rootHash: identity.rootHash), displayName: "Ana")], to: collaboration))
        guard let challenge = try await client.challenges(1).challenges.first else {
            throw ServiceError(.malformedAnswer, "the service gave no challenge")
        }
        let decision = try await client.open(try identity.proof(ofDevice: 0, signing: challenge), in: collaboration)
        guard let grant = decision.grant else {
            throw ServiceError(.grantRefused, "the participant was not let in: \(decision.verdict.name)")
        }
        return Room(collaboration: collaboration, grant: grant)
    }

    /// Ends the collaborations and closes the connections.
    package func close() async {
        for (number, room) in rooms.enumerated() {
            _ = try? await clients[number % clients.count].send(StopSharing(room.collaboration))
        }
        for client in clients { client.close() }
    }

    /// As much of a page as shows that nothing was lost: a thousand followers in one process have no time for more.
    private struct CountedPage: FeedPage {
        struct Post: Decodable {
            let sequence: UInt64
            /// In milliseconds since 1970.
            let date: Double
            let notices: [Notice]
        }

        struct Notice: Decodable {
            let place: Int
        }

        let posts: [Post]
        let next: UInt64

        var isEmpty: Bool { posts.isEmpty }
    }

    /// What the followers and posters of a run share.
    private final class Progress: Sendable {
        let delivered = Atomic<Int>(0)
        let misplaced = Atomic<Int>(0)
        let posted = Atomic<Int>(0)
        let next = Atomic<Int>(0)
        let latency = Mutex(Histogram())
        let failure = Mutex<ServiceError?>(nil)
    }

    /// Posts `count` notices at no more than `perSecond` and waits until every follower has what it should have, or
    /// nothing has come for ten seconds.
    ///
    /// Throws when a post is refused.
    package func run(count: Int, perSecond: Double = .infinity) async throws(ServiceError) -> NoticeReport {
        let progress = Progress()
        let posts = (count + plan.batch - 1) / plan.batch
        // From the end of what is there: nothing of an earlier run counts.
        var starts: [UInt64] = []
        for (number, room) in rooms.enumerated() {
            var page: NoticePage
            var after: UInt64 = 0
            repeat {
                page = try await clients[number % clients.count].send(
                    ReadNotices(.collaboration(room.collaboration), after: after))
                after = page.next
            } while page.hasMore
            starts.append(after)
        }
        let (plan, clients, rooms, begins) = (plan, clients, rooms, starts)
        let followers = (0..<plan.followers).map { number in
            Task {
                let place = number % rooms.count
                let (client, feed) = (clients[number % clients.count], Feed.collaboration(rooms[place].collaboration))
                var after = begins[place]
                var last = (sequence: after, place: 0)
                do {
                    while true {
                        let page = try await client.nextPage(of: feed, after: &after, reading: CountedPage.self)
                        let now = Date().timeIntervalSince1970
                        for post in page.posts {
                            for notice in post.notices {
                                let isNext = post.sequence > last.sequence
                                    || post.sequence == last.sequence && notice.place == last.place + 1
                                if !isNext { progress.misplaced.add(1, ordering: .relaxed) }
                                last = (post.sequence, notice.place)
                            }
                            progress.delivered.add(post.notices.count, ordering: .relaxed)
                        }
                        if let first = page.posts.first {
                            let nanoseconds = max(0, now - first.date / 1000) * 1e9
                            progress.latency.withLock { $0.record(UInt64(nanoseconds)) }
                        }
                    }
                } catch {}
            }
        }
        let begin = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for poster in 0..<plan.posters {
                group.addTask {
                    await NoticeLoad.post(
                        posts, plan.batch, perSecond, since: begin, rooms, clients[poster % clients.count], progress)
                }
            }
        }
        if let failure = progress.failure.withLock({ $0 }) {
            for follower in followers { follower.cancel() }
            throw failure
        }
        var report = NoticeReport()
        report.seconds = (ContinuousClock.now - begin) / .seconds(1)
        report.posted = progress.posted.load(ordering: .relaxed)
        report.expected = expected(posts)
        var (seen, quiet) = (0, 0)
        while progress.delivered.load(ordering: .relaxed) < report.expected, quiet < 1000 {
            try? await Task.sleep(for: .milliseconds(10))
            let now = progress.delivered.load(ordering: .relaxed)
            quiet = now == seen ? quiet + 1 : 0
            seen = now
        }
        // One more than there should be would come by now.
        try? await Task.sleep(for: .milliseconds(50))
        for follower in followers { follower.cancel() }
        report.delivered = progress.delivered.load(ordering: .relaxed)
        report.misplaced = progress.misplaced.load(ordering: .relaxed)
        report.latency = progress.latency.withLock { $0 }
        return report
    }

    /// Notices that all followers together should get of so many posts.
    private func expected(_ posts: Int) -> Int {
        rooms.indices.reduce(0) { sum, place in
            let followers = (plan.followers - place + rooms.count - 1) / rooms.count
            let postsHere = (posts - place + rooms.count - 1) / rooms.count
            return sum + max(0, followers) * max(0, postsHere) * plan.batch
        }
    }

    private static func post(
        _ posts: Int, _ batch: Int, _ perSecond: Double, since begin: ContinuousClock.Instant, _ rooms: [Room],
        _ client: RootgateClient, _ progress: Progress
    ) async {
        let events = (0..<batch).map { HighlightEvent.change(trigger: $0 % 2 == 0 ? .edit : .comment) }
        while true {
            let number = progress.next.add(1, ordering: .relaxed).oldValue
            guard number < posts, !Task.isCancelled, progress.failure.withLock({ $0 == nil }) else { return }
            if perSecond.isFinite {
                try? await Task.sleep(until: begin + .seconds(Double(number * batch) / perSecond), clock: .continuous)
            }
            let room = rooms[number % rooms.count]
            do throws(ServiceError) {
                _ = try await client.send(PostNotices(events, on: room.collaboration, by: room.grant))
                progress.posted.add(batch, ordering: .relaxed)
            } catch {
                progress.failure.withLock { $0 = $0 ?? error }
            }
        }
    }
}
