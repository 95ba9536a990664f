import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// Live streams, and requests that come again, against a live service.
@Suite struct FollowingTests {
    private let calendar = TestCalendar()
    private let service: TestService
    private let client: RootgateClient
    private let ana = SimulatedPerson("ana")

    init() throws {
        service = try TestService(calendar: calendar)
        client = try service.client()
    }

    private func start(_ name: String = "doc") async throws -> (CollaborationIdentifier, AccessGrant) {
        let owner = try #require(Account("owner"))
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: name))
        metadata.defaultPermission = .readWrite
        let collaboration = try await client.send(PrepareCollaboration(owner: owner, metadata: metadata))
            .collaborationIdentifier
        _ = try await client.send(
            AddParticipants(
                [NewParticipant(try ana.identity(in: collaboration), displayName: "Ana")], to: collaboration))
        return (collaboration, try #require(try await ana.open(collaboration, client).grant))
    }

    /// The first `count` notices of a stream, and whatever else is on their last page.
    private func collect(_ feed: Feed, _ count: Int, from after: UInt64 = 0, _ client: RootgateClient) async throws
        -> [Notice]
    {
        var notices: [Notice] = []
        for try await page in client.notices(feed, after: after) {
            notices += page.notices
            if notices.count >= count { break }
        }
        return notices
    }

    @Test("Followers get every notice once and in order")
    func followersGetEveryNoticeOnceAndInOrder() async throws {
        let (collaboration, grant) = try await start()
        let count = 200
        let followers = try (0..<6).map { _ in try service.client() }
        async let followed = withThrowingTaskGroup(of: [String].self) { group in
            for follower in followers {
                group.addTask { try await collect(.collaboration(collaboration), count, follower).map(\.identifier) }
            }
            var all: [[String]] = []
            for try await one in group { all.append(one) }
            return all
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for poster in 0..<4 {
                let other = followers[poster]
                group.addTask {
                    for _ in 0..<count / 8 {
                        _ = try await other.send(
                            PostNotices(
                                [.change(trigger: .edit), .change(trigger: .comment)], on: collaboration, by: grant))
                    }
                }
            }
            try await group.waitForAll()
        }
        let all = try await followed
        let stored = try await client.send(ReadNotices(.collaboration(collaboration)))
        #expect(stored.notices.count == count)
        for one in all { #expect(one == stored.notices.map(\.identifier)) }
    }

    @Test("A stream goes on through a restart with nothing lost or doubled")
    func aStreamGoesOnThroughARestartWithNothingLostOrDoubled() async throws {
        let (collaboration, first) = try await start()
        let follower = try service.client()
        async let followed = collect(.collaboration(collaboration), 20, follower)
        for _ in 0..<10 {
            _ = try await client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: first))
        }
        try service.restart()
        let second = try #require(try await ana.open(collaboration, client).grant)
        for _ in 0..<10 {
            _ = try await client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: second))
        }
        let stored = try await client.send(ReadNotices(.collaboration(collaboration))).notices
        #expect(stored.count == 20)
        #expect(try await followed == stored)
    }

    @Test("An empty page comes when the time is over")
    func anEmptyPageComesWhenTheTimeIsOver() async throws {
        let (collaboration, _) = try await start()
        let began = ContinuousClock.now
        let page = try await client.send(ReadNotices(.collaboration(collaboration), waitMilliseconds: 150))
        #expect(page.notices.isEmpty && !page.hasMore)
        #expect(ContinuousClock.now - began >= .milliseconds(140))
    }

    @Test("A stream of an account gets notices of collaborations that it is linked to later")
    func anAccountHearsOfCollaborationsThatItIsLinkedToWhileItWaits() async throws {
        async let followed = collect(.account(ana.account), 1, client)
        let (collaboration, grant) = try await start()
        try await Task.sleep(for: .milliseconds(50))
        _ = try await client.send(LinkAccount(ana.account, to: ana.identity(in: collaboration), in: collaboration))
        _ = try await client.send(PostNotices([.change(trigger: .comment)], on: collaboration, by: grant))
        #expect(try await followed.map(\.sentence) == ["Ana commented in the shared content"])
    }

    /// Posts and queries come in every order here. No query may stay suspended until its own time is over.
    @Test("A change that is made while a query becomes suspended is not missed")
    func changesWhileQueriesAreSuspended() async throws {
        let (collaboration, grant) = try await start()
        let readers = try (0..<8).map { _ in try service.client() }
        var random = SeededGenerator(seed: runSeed)
        var next: UInt64 = 0
        for round in 0..<100 {
            let after = next
            let delays = readers.map { _ in Int.random(in: 0..<2500, using: &random) }
            let began = ContinuousClock.now
            let pages = try await withThrowingTaskGroup(of: NoticePage.self) { group in
                for (reader, delay) in zip(readers, delays) {
                    group.addTask {
                        try await Task.sleep(for: .microseconds(delay))
                        return try await reader.send(
                            ReadNotices(.collaboration(collaboration), after: after, waitMilliseconds: 60_000))
                    }
                }
                try await Task.sleep(for: .microseconds(800))
                _ = try await client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
                var pages: [NoticePage] = []
                for try await page in group { pages.append(page) }
                return pages
            }
            #expect(pages.allSatisfy { $0.notices.count == 1 })
            next = pages.map(\.next).max() ?? 0
            let took = ContinuousClock.now - began
            guard took < .seconds(30) else {
                Issue.record("seed \(runSeed), round \(round): the change was answered after \(took)")
                return
            }
        }
    }

    @Test("A suspended query delays no other request")
    func suspendedQueriesDelayNobody() async throws {
        let (collaboration, grant) = try await start()
        // More than may be in flight on one connection.
        let waiting = try service.client()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<300 {
                group.addTask {
                    try await waiting.send(ReadNotices(.collaboration(collaboration), waitMilliseconds: 30_000)).notices
                        .count
                }
            }
            try await Task.sleep(for: .milliseconds(300))
            try await waiting.ping()
            _ = try await client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
            for try await count in group { #expect(count == 1) }
        }
    }

    @Test("A connection has a limited number of followers")
    func followersPerConnection() async throws {
        let (collaboration, grant) = try await start()
        let followers = try service.client()
        let codes = try await withThrowingTaskGroup(of: Optional<ServiceError.Code>.self) { group in
            for _ in 0..<Limits.followsPerConnectionMax + 5 {
                group.addTask {
                    await code(of: { () async throws(ServiceError) in
                        _ = try await followers.send(
                            ReadNotices(.collaboration(collaboration), waitMilliseconds: 60_000))
                    })
                }
            }
            // Queries over the limit are refused at once. The others are answered after the post.
            var codes: [ServiceError.Code?] = []
            while codes.count < 5, let next = try await group.next() { codes.append(next) }
            #expect(codes == Array(repeating: .limitExceeded, count: 5))
            _ = try await client.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
            for try await next in group { codes.append(next) }
            return codes
        }
        #expect(codes.count { $0 == nil } == Limits.followsPerConnectionMax)
        let following = try await client.statistics().first { $0.name == "requests-following" }
        #expect(following?.value == 0)
    }

    @Test("One more follower than the share of an address is answered busy")
    func followersPerService() async throws {
        // An address alone gets half: three queries with two topics.
        let small = try TestService { ($0.followsMax, $0.followedTopicsMax) = (6, 4) }
        let client = try small.client()
        // A query of an account that takes part nowhere has one topic.
        func query(_ name: String) throws -> ReadNotices {
            ReadNotices(.account(try #require(Account(name))), waitMilliseconds: 60_000)
        }
        let queries = try ["a", "b", "c"].map(query)
        let waiting = queries.prefix(2).map { query in Task { try await client.send(query) } }
        func following() async throws -> UInt64? {
            try await client.statistics().first { $0.name == "requests-following" }?.value
        }
        while try await following() != 2 { try await Task.sleep(for: .milliseconds(5)) }
        await #expect(throws: ServiceError(.busy, "")) { try await client.send(queries[2]) }
        #expect(try await following() == 2)
        let few = try TestService { ($0.followsMax, $0.followedTopicsMax) = (1, 100) }
        let other = try few.client()
        let first = Task { try await other.send(queries[0]) }
        while try await other.statistics().first(where: { $0.name == "requests-following" })?.value != 1 {
            try await Task.sleep(for: .milliseconds(5))
        }
        await #expect(throws: ServiceError(.busy, "")) { try await other.send(queries[1]) }
        // The shutdowns at the end of the test wait for no query: refused ones are gone, suspended ones are answered.
        for task in waiting + [first] { task.cancel() }
    }

    @Test("Followers of a closed connection are forgotten")
    func followersOfAClosedConnectionAreForgotten() async throws {
        let (collaboration, _) = try await start()
        let gone = try service.client()
        let waiting = Task { try await gone.send(ReadNotices(.collaboration(collaboration), waitMilliseconds: 60_000)) }
        func following() async throws -> UInt64? {
            try await client.statistics().first { $0.name == "requests-following" }?.value
        }
        while try await following() != 1 { try await Task.sleep(for: .milliseconds(5)) }
        gone.close()
        while try await following() != 0 { try await Task.sleep(for: .milliseconds(5)) }
        await #expect(throws: ServiceError(.connectionLost, "")) { try await waiting.value }
    }

    @Test("A shutdown answers suspended queries")
    func aShutdownAnswersSuspendedQueries() async throws {
        let (collaboration, _) = try await start()
        async let page = client.send(ReadNotices(.collaboration(collaboration), waitMilliseconds: 30_000))
        try await Task.sleep(for: .milliseconds(200))
        let began = ContinuousClock.now
        try service.restart()
        // The query was answered by the shutdown, or the client has sent it again and it is suspended once more.
        let other = try service.client()
        let grant = try #require(try await ana.open(collaboration, other).grant)
        _ = try await other.send(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
        _ = try await page
        #expect(ContinuousClock.now - began < .seconds(20))
    }

    // MARK: Repeating

    private var metadata: CollaborationMetadata {
        CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "started"))
    }

    @Test("A post that is sent again is posted once")
    func aPostThatIsSentAgainIsPostedOnce() async throws {
        let (collaboration, grant) = try await start()
        let post = PostNotices([.change(trigger: .edit)], on: collaboration, by: grant)
        let identifier = MutationIdentifier.random()
        let first = try await client.send(post, identifier: identifier)
        calendar.advance(seconds: 5)
        let again = try await client.send(post, identifier: identifier)
        #expect(again.sequence == first.sequence)
        #expect(again.changed == 0)
        #expect(try await client.send(ReadNotices(.collaboration(collaboration))).notices.count == 1)
    }

    @Test("A repeated start is a conflict when the collaboration has ended")
    func aStartIsNotToldAgainWhenItWasEnded() async throws {
        let owner = try #require(Account("owner"))
        let identifier = MutationIdentifier.random()
        let request = PrepareCollaboration(owner: owner, metadata: metadata)
        let first = try await client.send(request, identifier: identifier)
        let again = try await client.send(request, identifier: identifier)
        #expect(again.collaborationIdentifier == first.collaborationIdentifier)
        #expect(first.isNew && again == first)
        #expect(try await !client.send(request).isNew)
        _ = try await client.send(StopSharing(first.collaborationIdentifier))
        await #expect(throws: ServiceError(.mutationConflict, "")) {
            try await client.send(request, identifier: identifier)
        }
    }

    @Test("Concurrent copies of a request are carried out once")
    func copiesOfARequestThatMeetAreCarriedOutOnce() async throws {
        let (collaboration, grant) = try await start()
        let post = PostNotices([.change(trigger: .edit)], on: collaboration, by: grant)
        let clients = try (0..<6).map { _ in try service.client() }
        for _ in 0..<20 {
            let identifier = MutationIdentifier.random()
            let receipts = try await withThrowingTaskGroup(of: ChangeReceipt.self) { group in
                for client in clients { group.addTask { try await client.send(post, identifier: identifier) } }
                var receipts: [ChangeReceipt] = []
                for try await receipt in group { receipts.append(receipt) }
                return receipts
            }
            #expect(Set(receipts.map(\.sequence)).count == 1)
            #expect(receipts.map(\.changed).sorted() == [0, 0, 0, 0, 0, 1])
        }
        #expect(try await client.send(ReadNotices(.collaboration(collaboration))).notices.count == 20)
    }

    @Test("Stopping again is answered as the first time")
    func stoppingAgainIsAnsweredAsTheFirstTime() async throws {
        let (collaboration, _) = try await start()
        let identifier = MutationIdentifier.random()
        let first = try await client.send(StopSharing(collaboration), identifier: identifier)
        let again = try await client.send(StopSharing(collaboration), identifier: identifier)
        #expect(again.sequence == first.sequence)
        #expect(again.changed == 0)
        await #expect(throws: ServiceError(.unknownCollaboration, "")) {
            try await client.send(StopSharing(collaboration))
        }
    }

    @Test("Unknown requests and bad JSON are answered with their codes")
    func unknownRequestsAndBadJSONAreAnsweredWithTheirCodes() async throws {
        struct Unheard: CollaborationRequest {
            typealias Answer = ChangeReceipt
            static let name = "unheard"
        }
        await #expect(throws: ServiceError(.unknownOperation, "")) { try await client.send(Unheard()) }
        struct Crooked: CollaborationRequest {
            typealias Answer = ChangeReceipt
            static let name = "stopSharing"
            var collaboration = 5
        }
        await #expect(throws: ServiceError(.malformedRequest, "")) { try await client.send(Crooked()) }
        struct Invalid: CollaborationRequest {
            typealias Answer = ChangeReceipt
            static let name = "stopSharing"
            var collaboration = ""
        }
        await #expect(throws: ServiceError(.malformedRequest, "")) { try await client.send(Invalid()) }
    }

    @Test("Many writers of one record all get through")
    func manyWritersOfOneRecordAllGetThrough() async throws {
        let owner = try #require(Account("owner"))
        let (collaboration, _) = try await start()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask { [client] in
                    let app = "app.\(number)"
                    _ = try await client.send(SetConsent(of: owner, .app(app), isAllowed: false))
                    _ = try await client.send(
                        CustomizeDetails(of: collaboration, manageButtonTitle: .set("Manage \(number)")))
                }
            }
            try await group.waitForAll()
        }
        #expect(try await client.send(ReadConsent(of: owner)).apps.count == 8)
    }
}
