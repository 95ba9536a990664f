import Core
import Foundation
import Identity
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@Suite struct ClientTests {
    @Test("A connection that was lost is made again")
    func aConnectionThatWasLostIsMadeAgain() async throws {
        let service = try TestService()
        let client = try service.client()
        try await client.ping()
        try service.restart()
        try await client.ping()
    }

    @Test("A repeatable request waits for a service that comes back")
    func aRepeatableRequestWaitsForAServiceThatComesBack() async throws {
        let service = try TestService()
        service.stop()
        let client = try service.client()
        let collaboration = try #require(CollaborationIdentifier("later"))
        async let receipt = client.createCollaboration(collaboration)
        try await Task.sleep(for: .milliseconds(300))
        try service.start()
        let answered = try await receipt
        #expect(answered.changed == 1)
    }

    @Test("An unreachable service is an error of its own within the deadline")
    func nobodyThereIsAnErrorOfItsOwnWithinTheDeadline() async throws {
        let gone = try TestService()
        gone.stop()
        let client = try gone.client(timeout: .milliseconds(200))
        await #expect(throws: ServiceError(.connectionRefused, "")) { try await client.ping() }
    }

    @Test("A service that does not answer misses the deadline")
    func aServiceThatDoesNotAnswerMissesTheDeadline() async throws {
        // A socket that accepts connections into its backlog and never answers.
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        defer { close(listener.descriptor) }
        let client = try RootgateClient(listener.endpoint, configuration: .init(requestTimeout: .milliseconds(150)))
        await #expect(throws: ServiceError(.deadlineExceeded, "")) { try await client.ping() }
    }

    @Test(
        "A request without a practical deadline gets its answer",
        arguments: [Duration.seconds(4000), .seconds(400 * 365 * 86_400), .seconds(Int64.max / 4)])
    func whoHasAllTheTimeThereIsGetsAnAnswer(timeout: Duration) async throws {
        let running = try TestService()
        let client = try RootgateClient(
            running.endpoint, configuration: .init(requestTimeout: timeout, connectTimeout: timeout))
        try await client.ping()
    }

    @Test("A cancelled task stops waiting")
    func aCancelledTaskStopsWaiting() async throws {
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        defer { close(listener.descriptor) }
        let client = try RootgateClient(listener.endpoint, configuration: .init(requestTimeout: patience))
        let task = Task { try await client.ping() }
        try await Task.sleep(for: .milliseconds(100))
        task.cancel()
        await #expect(throws: ServiceError(.cancelled, "")) { try await task.value }
    }

    @Test("A closed client says so")
    func aClosedClientSaysSo() async throws {
        let running = try TestService()
        let client = try running.client()
        try await client.ping()
        client.close()
        await #expect(throws: ServiceError(.connectionLost, "")) { try await client.ping() }
    }

    @Test("Counts over a limit are refused before they are sent")
    func countsOverALimitAreRefusedBeforeTheyAreSent() async throws {
        let client = try RootgateClient(Endpoint(host: "127.0.0.1", port: 1))
        let proof = SignedIdentityProof(
            publicKey: [], publicKeyIndex: 0, inclusionHashes: [], signature: [], signatureFormat: .der, data: [])
        let request = AccessRequest(collaboration: try #require(CollaborationIdentifier("a")), proof: proof)
        await #expect(throws: ServiceError(.limitExceeded, "")) {
            try await client.verify(Array(repeating: request, count: Limits.proofsPerRequestMax + 1))
        }
        await #expect(throws: ServiceError(.limitExceeded, "")) {
            try await client.challenges(Limits.challengesPerRequestMax + 1)
        }
    }

    @Test("An error says whether the service answered it or the client found it")
    func errorOrigins() async throws {
        func error(_ body: () async throws(ServiceError) -> Void) async -> ServiceError? {
            do throws(ServiceError) {
                try await body()
                return nil
            } catch {
                return error
            }
        }
        let service = try TestService()
        let client = try service.client()
        let unknown = try #require(CollaborationIdentifier("unknown"))
        let answered = await error { () throws(ServiceError) in _ = try await client.state(of: unknown) }
        #expect(answered?.code == .unknownCollaboration)
        #expect(answered?.origin == .service)
        #expect(answered?.description.hasPrefix("the service answered unknown-collaboration: ") == true)
        // The same code can come from either side.
        let refused = await error { () throws(ServiceError) in
            _ = try await client.challenges(Limits.challengesPerRequestMax + 1)
        }
        #expect(refused?.code == .limitExceeded)
        #expect(refused?.origin == .local)
        client.close()
        let lost = await error { () throws(ServiceError) in try await client.ping() }
        #expect(lost?.origin == .local)
        #expect(lost?.description.hasPrefix("connection-lost: ") == true)
    }

    @Test("The service says what it is")
    func theServiceSaysWhatItIs() async throws {
        let running = try TestService()
        let hello = try await running.client().hello()
        #expect(hello.version == 1)
        #expect(hello.software == "rootgate \(Service.version)")
        #expect(hello.limits[1] == UInt64(Limits.frameBodyBytesMax))
        #expect(hello.limits.count == 15)
    }
}
