package import Core
import Dispatch
import Identity
package import RootgateClient
import TLS

/// The result of a notice run.
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

/// A load of notices: live followers of many collaborations, and one client that posts.
package final class NoticeLoad: Sendable {
    /// How a run is made up.
    package struct Plan: Sendable {
        package var collaborations = 100
        /// Of all collaborations together.
        package var followers = 1000
        /// That the followers share.
        package var connections = 8
        /// Events in one post, and posts in flight.
        package var batch = 8
        package var postsInFlight = 32

        package init() {}
    }

    private struct FollowedCollaboration: Sendable {
        let collaboration: CollaborationIdentifier
        /// The post that is repeated there, as JSON.
        let post: [UInt8]
    }

    private let dialer: KeyedDialer
    private let plan: Plan
    /// Sets up and clears away; what is measured goes over connections of its own.
    private let client: RootgateClient
    private let collaborations: [FollowedCollaboration]

    /// Starts the collaborations, each with one participant, who gets a grant. `progress` is shown how many there are.
    ///
    /// Throws what the service throws.
    package init(
        _ endpoint: Endpoint, tls: TLSOptions? = nil, key: APIKey? = nil, _ plan: Plan,
        _ progress: ProgressMeter = .silent
    ) async throws(ServiceError) {
        dialer = try KeyedDialer(endpoint, tls: tls, key: key)
        self.plan = plan
        guard let owner = Account("load-\(MutationIdentifier.random())") else {
            throw ServiceError(.internalFault, "an account's name is not valid")
        }
        client = try RootgateClient(endpoint, configuration: .init(requestTimeout: .seconds(60), tls: tls, key: key))
        let person = Person(deviceCount: 1)
        var collaborations: [FollowedCollaboration] = []
        for number in 0..<max(1, plan.collaborations) {
            progress.show("\(number) of \(plan.collaborations)")
            collaborations.append(try await NoticeLoad.followedCollaboration(number, owner, person, plan.batch, client))
        }
        self.collaborations = collaborations
    }

    private static func followedCollaboration(
        _ number: Int, _ owner: Account, _ person: Person, _ batch: Int, _ client: RootgateClient
    ) async throws(ServiceError) -> FollowedCollaboration {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "\(number)"))
        metadata.title = "Document \(number)"
        metadata.defaultPermission = .readWrite
        let collaboration = try await client.send(
            PrepareCollaboration(owner: owner, metadata: metadata)
        ).collaborationIdentifier
        let identity = try person.identity(in: collaboration)
        _ = try await client.send(
            AddParticipants(
                [NewParticipant(PersonIdentity(rootHash: identity.rootHash), displayName: "Ana")], to: collaboration))
        let challenge = try await client.challenge()
        let decision = try await client.open(try identity.proof(ofDevice: 0, signing: challenge), in: collaboration)
        guard let grant = decision.grant else {
            throw ServiceError(.grantRefused, "the participant was not let in: \(decision.verdict.name)")
        }
        let events = (0..<batch).map { HighlightEvent.change(trigger: $0 % 2 == 0 ? .edit : .comment) }
        let post = try JSON.encode(PostNotices(events, on: collaboration, by: grant))
        return FollowedCollaboration(collaboration: collaboration, post: post)
    }

    /// Ends the collaborations and closes the connections.
    package func close() async {
        for followed in collaborations { _ = try? await client.send(StopSharing(followed.collaboration)) }
        client.close()
    }

    /// Posts `count` notices at no more than `perSecond` and waits until every follower has what it should have, or
    /// nothing has come for ten seconds. `progress` is shown how many are posted and delivered.
    ///
    /// Throws when a post is refused.
    package func run(
        count: Int, perSecond: Double = .infinity, _ progress: ProgressMeter = .silent
    ) async throws(ServiceError) -> NoticeReport {
        let tally = NoticeTally()
        let progressTask = show(tally, of: count, progress)
        defer { progressTask.cancel() }
        let posts = (count + plan.batch - 1) / plan.batch
        let clients = try NoticeClients(dialer, try await feedStarts(), tally)
        let plan = plan
        let begin = ContinuousClock.now
        let refusal = await onOwnThread { () -> ServiceError? in
            do throws(ServiceError) {
                try clients.follow(plan.followers, connections: max(1, plan.connections))
                try clients.post(
                    posts, inFlight: min(plan.postsInFlight, Limits.requestsInFlightPerConnectionMax),
                    perSecond: perSecond / Double(plan.batch))
                return nil
            } catch {
                return error
            }
        }
        if refusal == nil { for await _ in tally.posting {} }
        var report = NoticeReport()
        report.seconds = (ContinuousClock.now - begin) / .seconds(1)
        report.posted = tally.posted.load(ordering: .relaxed) * plan.batch
        report.expected = expected(posts)
        if refusal == nil { await arrive(report.expected, tally) }
        let failure = refusal ?? tally.failure.withLock { $0 }
        await onOwnThread { clients.stop() }
        if let failure { throw failure }
        report.delivered = tally.delivered.load(ordering: .relaxed)
        report.misplaced = tally.misplaced.load(ordering: .relaxed)
        report.latency = tally.latency.withLock { $0 }
        return report
    }

    /// Shows `progress` how far the run is, until the task is cancelled.
    private func show(_ tally: NoticeTally, of count: Int, _ progress: ProgressMeter) -> Task<Void, Never> {
        let batch = plan.batch
        return Task {
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(500))
                let posted = tally.posted.load(ordering: .relaxed) * batch
                let delivered = tally.delivered.load(ordering: .relaxed)
                progress.show(
                    "\(posted) of \(count) posted, \(delivered) delivered", done: Double(posted) / Double(max(1, count))
                )
            }
        }
    }

    /// Returns when the given number of notices is delivered, or when none has arrived for ten seconds.
    private func arrive(_ expected: Int, _ tally: NoticeTally) async {
        var (seen, quiet) = (0, 0)
        while tally.delivered.load(ordering: .relaxed) < expected, quiet < 1000, !Task.isCancelled,
            tally.failure.withLock({ $0 == nil })
        {
            try? await Task.sleep(for: .milliseconds(10))
            let now = tally.delivered.load(ordering: .relaxed)
            quiet = now == seen ? quiet + 1 : 0
            seen = now
        }
        // A notice too many would come by now.
        try? await Task.sleep(for: .milliseconds(50))
    }

    /// The ends of the feeds as they are now, so that nothing of an earlier run counts.
    private func feedStarts() async throws(ServiceError) -> [NoticeClients.FeedStart] {
        var starts: [NoticeClients.FeedStart] = []
        for followed in collaborations {
            var page: NoticePage
            var after: UInt64 = 0
            repeat {
                page = try await client.send(ReadNotices(.collaboration(followed.collaboration), after: after))
                after = page.next
            } while page.hasMore
            starts.append(
                NoticeClients.FeedStart(collaboration: followed.collaboration, begin: after, post: followed.post))
        }
        return starts
    }

    /// Runs `body`, which blocks, on a thread that no task needs.
    private func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { done in
            DispatchQueue.global().async { done.resume(returning: body()) }
        }
    }

    /// The number of notices that all followers together should get of the given number of posts.
    private func expected(_ posts: Int) -> Int {
        collaborations.indices.reduce(0) { sum, number in
            let followers = (plan.followers - number + collaborations.count - 1) / collaborations.count
            let postsHere = (posts - number + collaborations.count - 1) / collaborations.count
            return sum + max(0, followers) * max(0, postsHere) * plan.batch
        }
    }
}
