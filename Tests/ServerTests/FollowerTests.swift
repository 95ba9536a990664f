import Core
import Identity
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Wire

@Suite struct FollowerTests {
    @Test("Who has many follow and does not read gets busy, and the service keeps little for it")
    func aCrowdThatDoesNotRead() async throws {
        let service = try TestService { $0.linkBase = "https://decks.example/c" }
        let client = try service.client()
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        // In each sentence.
        metadata.title = String(repeating: "T", count: 400)
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
        let question = try JSON.encode(ReadNotices(.collaboration(collaboration), after: 0, waitMilliseconds: 60_000))
        let call = CollaborationCall(identifier: .random(), name: ReadNotices.name, json: question)
        let peer = try RawPeer(service.endpoint)
        for number in 0..<count { peer.send(.collaborate(call), id: UInt64(number)) }
        func following() async throws -> UInt64? {
            try await client.statistics().first { $0.name == "requests-following" }?.value
        }
        while try await following() != UInt64(count) { try await Task.sleep(for: .milliseconds(5)) }
        let events = [HighlightEvent](repeating: .change(trigger: .edit), count: Limits.noticesPerPostMax)
        _ = try await client.send(PostNotices(events, on: collaboration, by: grant))
        while try await following() != 0 { try await Task.sleep(for: .milliseconds(5)) }
        // The gate and others are served meanwhile.
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
        // Nothing is lost by it: who asks again gets the page.
        peer.send(.collaborate(call), id: 7)
        let again = try #require(peer.readFrame())
        #expect(again.header.kind == .answer && again.body.count > 30_000)
    }
}
