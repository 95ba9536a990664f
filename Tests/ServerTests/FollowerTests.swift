import Core
import Dispatch
import Identity
import Platform
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Transport
import Wire

@Suite struct FollowerTests {
    @Test("A connection follows when all that it sent last are queries that wait, and only then")
    func kinds() async throws {
        let loops = Shared<[EventLoop]>([])
        var surroundings = Surroundings()
        let make = surroundings.makeLoop
        surroundings.makeLoop = { memory, timeouts, clock throws(SystemFailure) in
            let loop = try make(memory, timeouts, clock)
            loops.with { $0.append(loop) }
            return loop
        }
        let service = try TestService(surroundings: surroundings)
        let collaboration = try await service.client().send(
            PrepareCollaboration(
                owner: try #require(Account("olga")),
                metadata: CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck")))
        ).collaborationIdentifier
        func query(_ milliseconds: Int?) throws -> Request {
            let query = ReadNotices(.collaboration(collaboration), after: 0, waitMilliseconds: milliseconds)
            return .collaborate(
                CollaborationCall(identifier: .random(), name: ReadNotices.name, json: try JSON.encode(query)))
        }
        let challenges = Request.issueChallenges(count: 1)
        let waiting = try query(60_000)
        // Each changes the kind, so that the next one is sent when it was handled.
        let sent: [([Request], WorkKind)] = [
            ([waiting], .following), ([challenges], .prompt), ([waiting, waiting], .following),
            ([waiting, challenges], .prompt), ([waiting], .following), ([challenges, waiting], .prompt),
            ([waiting], .following), ([try query(nil)], .prompt), ([waiting], .following), ([try query(0)], .prompt),
        ]
        let peer = try RawPeer(service.endpoint)
        for (requests, kind) in sent {
            var bytes: [UInt8] = []
            for request in requests {
                FrameWriter.append(.request, request.operation.rawValue, requestID: 1, to: &bytes) {
                    request.append(to: &$0)
                }
            }
            peer.send(bytes)
            let isSo = becomesTrue { follows(loops.value) == (kind == .following) }
            #expect(isSo, "\(requests.map(\.operation))")
        }
    }

    /// Whether a connection of the loops follows.
    private func follows(_ loops: [EventLoop]) -> Bool {
        let (kinds, looked) = (Shared<[WorkKind]>([]), DispatchSemaphore(value: 0))
        for loop in loops {
            loop.forEachConnection { connection in kinds.with { $0.append(connection.kind) } }
            loop.execute { looked.signal() }
            looked.wait()
        }
        return kinds.value.contains(.following)
    }

    @Test("A peer that reads no answers gets busy, and costs bounded memory")
    func followersThatDoNotRead() async throws {
        let service = try TestService { $0.linkBase = "https://decks.example/c" }
        let client = try service.client()
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        // Every sentence has the title in it.
        metadata.title = String(repeating: "T", count: 400)
        metadata.defaultPermission = .readWrite
        let collaboration = try await client.send(
            PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        ).collaborationIdentifier
        let identity = try Person(deviceCount: 1).identity(in: collaboration)
        _ = try await client.send(
            AddParticipants([NewParticipant(PersonIdentity(rootHash: identity.rootHash))], to: collaboration))
        let challenge = try await client.challenges(1).challenges[0]
        let grant = try #require(
            try await client.open(try identity.proof(ofDevice: 0, signing: challenge), in: collaboration).grant)

        let count = 1000
        let query = try JSON.encode(ReadNotices(.collaboration(collaboration), after: 0, waitMilliseconds: 60_000))
        let call = CollaborationCall(identifier: .random(), name: ReadNotices.name, json: query)
        let peer = try RawPeer(service.endpoint)
        for number in 0..<count { peer.send(.collaborate(call), id: UInt64(number)) }
        func wait(until figure: String, is value: Int) async throws {
            while try await client.statistics().first(where: { $0.name == figure })?.value != UInt64(value) {
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        try await wait(until: "requests-following", is: count)
        let events = [HighlightEvent](repeating: .change(trigger: .edit), count: Limits.noticesPerPostMax)
        _ = try await client.send(PostNotices(events, on: collaboration, by: grant))
        // Every query is answered before the peer begins to read; what is left is the request for statistics.
        try await wait(until: "requests-following", is: 0)
        try await wait(until: "requests-in-flight", is: 1)
        // Others are served meanwhile.
        try await client.ping()

        var answers = 0
        var answerBytes = 0
        var refusals = 0
        var seen: Set<UInt64> = []
        for _ in 0..<count {
            let (header, body) = try #require(peer.readFrame())
            seen.insert(header.requestID)
            if header.kind == .answer {
                answers += 1
                answerBytes += body.count
            } else {
                #expect(
                    try body.withRawBytes { bytes throws(ServiceError) in try FrameWriter.decodeError(bytes) }.code
                        == .busy)
                refusals += 1
            }
        }
        #expect(seen.count == count)
        // A page has more than 30 kB, and the system takes some megabytes for a connection.
        #expect(answers > 0 && answerBytes / max(1, answers) > 30_000)
        #expect(answerBytes < 20 << 20)
        #expect(refusals > count / 3)
        // A refused query loses nothing: sent again, it gets the page.
        peer.send(.collaborate(call), id: 7)
        let again = try #require(peer.readFrame())
        #expect(again.header.kind == .answer && again.body.count > 30_000)
    }
}
