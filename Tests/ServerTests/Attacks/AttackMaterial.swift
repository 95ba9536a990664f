import Collaboration
import Core
import RootgateClient
import TestSupport
import Testing
import Wire
import ServiceTestSupport

@testable import Server

/// What attackers send, and what the service holds of it.
enum AttackMaterial {
    /// A change log whose pages have more than a MiB.
    static func fillChangeLog(over client: RootgateClient) async throws {
        let small = try await SmallCollaboration(client, named: "filler")
        var random = SeededGenerator(seed: runSeed)
        let roots = (0..<Limits.rootsPerRequestMax).map { _ in random.digest() }
        try await client.addRoots(roots, to: small.collaboration)
    }

    static func requests(_ request: Request, count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in 0..<count {
            FrameWriter.append(.request, request.operation.rawValue, requestID: UInt64(number), to: &bytes) {
                request.append(to: &$0)
            }
        }
        return bytes
    }

    /// What connections of one address hold that leave answers of a MiB unread. A connection is no longer read when it
    /// has more than half of its share, or its address more than three quarters of its own. A part of the answers is in
    /// the system's sockets.
    static func heldUnread(_ connections: Int) -> Int {
        let memory = Configuration(dataDirectory: "", workers: 1).requestBytesMax
        let share = (memory - memory / Limits.urgentMemoryPart) / 2
        return min(connections * share / Limits.memoryPartPerConnection / 2, share / 4 * 3)
    }

    static func prepare(over client: RootgateClient) async throws -> CollaborationIdentifier {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        metadata.title = "Deck"
        return try await client.send(
            PrepareCollaboration(owner: try #require(Account("olga")), metadata: metadata)
        ).collaborationIdentifier
    }

    static func query(_ collaboration: CollaborationIdentifier, after: UInt64 = 0) throws -> CollaborationCall {
        let query = try JSON.encode(ReadNotices(.collaboration(collaboration), after: after, waitMilliseconds: 60_000))
        return CollaborationCall(identifier: .random(), name: ReadNotices.name, json: query)
    }
}
