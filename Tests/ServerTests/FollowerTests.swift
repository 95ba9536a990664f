import Core
import Identity
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@Suite struct FollowerTests {
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
