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
        /// What is posted there again and again, as JSON.
        let post: [UInt8]
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
            rooms.append(try await NoticeLoad.room(number, owner, person, plan.batch, clients[number % clients.count]))
        }
        self.rooms = rooms
    }

    private static func room(
        _ number: Int, _ owner: Account, _ person: Person, _ batch: Int, _ client: RootgateClient
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
        let events = (0..<batch).map { HighlightEvent.change(trigger: $0 % 2 == 0 ? .edit : .comment) }
        let post = try JSON.encode(PostNotices(events, on: collaboration, by: grant))
        return Room(collaboration: collaboration, post: post)
    }

    /// Ends the collaborations and closes the connections.
    package func close() async {
        for (number, room) in rooms.enumerated() {
            _ = try? await clients[number % clients.count].send(StopSharing(room.collaboration))
        }
        for client in clients { client.close() }
    }

    /// As much of a page as shows that nothing was lost: a thousand followers in one process have no time for more.
    private struct CountedPage {
        /// The place of each notice in its post, and the post's in the change log.
        var places: [(sequence: UInt64, place: Int)] = []
        /// When the first one was posted, in milliseconds since 1970.
        var date: Double?
        let next: UInt64

        init?(_ json: [UInt8]) {
            guard let page = try? JSONSerialization.jsonObject(with: Data(json)) as? [String: Any],
                let posts = page["posts"] as? [[String: Any]], let next = page["next"] as? UInt64
            else { return nil }
            self.next = next
            date = posts.first?["date"] as? Double
            for post in posts {
                guard let sequence = post["sequence"] as? UInt64, let notices = post["notices"] as? [[String: Any]] else {
                    return nil
                }
                for notice in notices {
                    guard let place = notice["place"] as? Int else { return nil }
                    places.append((sequence, place))
                }
            }
        }
    }

    /// The question for the notices of a feed, written once but for where it begins.
    private struct Question {
        private static let start = Array(#"{"after":"#.utf8)
        static let wait = Duration.seconds(20)
        private let rest: ArraySlice<UInt8>

        init(_ feed: Feed) throws(ServiceError) {
            let json = try JSON.encode(ReadNotices(feed, after: 0, waitMilliseconds: 20_000))
            let first = Question.start + [UInt8(ascii: "0")]
            guard json.starts(with: first) else {
                throw ServiceError(.internalFault, "a question's JSON does not begin with its place")
            }
            rest = json.dropFirst(first.count)
        }

        func json(after sequence: UInt64) -> [UInt8] { Question.start + Array(String(sequence).utf8) + rest }
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
                let client = clients[number % clients.count]
                var after = begins[number % rooms.count]
                var last = (sequence: after, place: 0)
                do {
                    let question = try Question(.collaboration(rooms[number % rooms.count].collaboration))
                    while true {
                        guard let page = try await NoticeLoad.page(question.json(after: after), from: client) else {
                            progress.misplaced.add(1, ordering: .relaxed)
                            return
                        }
                        after = page.next
                        let now = Date().timeIntervalSince1970
                        for (sequence, place) in page.places {
                            let isNext = sequence > last.sequence
                                || sequence == last.sequence && place == last.place + 1
                            if !isNext { progress.misplaced.add(1, ordering: .relaxed) }
                            last = (sequence, place)
                        }
                        progress.delivered.add(page.places.count, ordering: .relaxed)
                        if let date = page.date {
                            progress.latency.withLock { $0.record(UInt64(max(0, now - date / 1000) * 1e9)) }
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

    /// The answer to a question; `nil` when it can't be read.
    private static func page(
        _ question: [UInt8], from client: RootgateClient
    ) async throws(ServiceError) -> CountedPage? {
        while true {
            do throws(ServiceError) {
                return CountedPage(try await client.exchange(ReadNotices.name, question, waiting: Question.wait))
            } catch {
                try await NoticeStream.Iterator.pause(before: error)
            }
        }
    }

    /// Notices that all followers together should get of so many posts.
    private func expected(_ posts: Int) -> Int {
        rooms.indices.reduce(0) { sum, room in
            let followers = (plan.followers - room + rooms.count - 1) / rooms.count
            let postsHere = (posts - room + rooms.count - 1) / rooms.count
            return sum + max(0, followers) * max(0, postsHere) * plan.batch
        }
    }

    private static func post(
        _ posts: Int, _ batch: Int, _ perSecond: Double, since begin: ContinuousClock.Instant, _ rooms: [Room],
        _ client: RootgateClient, _ progress: Progress
    ) async {
        while true {
            let number = progress.next.add(1, ordering: .relaxed).oldValue
            guard number < posts, !Task.isCancelled, progress.failure.withLock({ $0 == nil }) else { return }
            if perSecond.isFinite {
                try? await Task.sleep(until: begin + .seconds(Double(number * batch) / perSecond), clock: .continuous)
            }
            let room = rooms[number % rooms.count]
            do throws(ServiceError) {
                _ = try await client.exchange(PostNotices.name, room.post)
                progress.posted.add(batch, ordering: .relaxed)
            } catch {
                progress.failure.withLock { $0 = $0 ?? error }
            }
        }
    }
}
