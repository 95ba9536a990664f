import Core
import Foundation
import Identity
import RootgateClient
import Server
import TestSupport
import Testing
import Transport

@Suite struct ClientTests {
    private func service(_ directory: ScratchDirectory, port: UInt16 = 0) throws -> Service {
        var configuration = Configuration(dataDirectory: directory.path + "/data", workers: 1)
        configuration.endpoints = [Endpoint(host: "127.0.0.1", port: port)]
        return try Service(configuration)
    }

    /// A service where one was before. Another test's connection may have taken the port meanwhile, for a while.
    private func service(_ directory: ScratchDirectory, againOn endpoint: Endpoint) async throws -> Service {
        for _ in 0..<200 {
            do {
                return try service(directory, port: endpoint.port)
            } catch let error as ServiceError where error.reason.contains("in use") {
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        return try service(directory, port: endpoint.port)
    }

    @Test func aConnectionThatWasLostIsMadeAgain() async throws {
        let directory = ScratchDirectory()
        var first: Service? = try service(directory)
        let endpoint = try #require(first?.endpoints.first)
        let client = try RootgateClient(endpoint, configuration: .init(requestTimeout: patience))
        try await client.ping()
        _ = first?.shutDown()
        first = nil
        let second = try await service(directory, againOn: endpoint)
        try await client.ping()
        _ = second.shutDown()
    }

    @Test func aRepeatableRequestWaitsForAServiceThatComesBack() async throws {
        let directory = ScratchDirectory()
        var first: Service? = try service(directory)
        let endpoint = try #require(first?.endpoints.first)
        _ = first?.shutDown()
        first = nil
        let client = try RootgateClient(endpoint, configuration: .init(requestTimeout: patience))
        let collaboration = try #require(CollaborationIdentifier("later"))
        async let receipt = client.createCollaboration(collaboration)
        try await Task.sleep(for: .milliseconds(300))
        let second = try await service(directory, againOn: endpoint)
        let answered = try await receipt
        #expect(answered.changed == 1)
        _ = second.shutDown()
    }

    @Test func nobodyThereIsAnErrorOfItsOwnWithinTheDeadline() async throws {
        let directory = ScratchDirectory()
        let gone = try service(directory)
        let endpoint = gone.endpoints[0]
        _ = gone.shutDown()
        let client = try RootgateClient(endpoint, configuration: .init(requestTimeout: .milliseconds(200)))
        await #expect(throws: ServiceError(.connectionRefused, "")) { try await client.ping() }
    }

    @Test func aServiceThatDoesNotAnswerMissesTheDeadline() async throws {
        // Listens, takes the connection in its backlog and never answers.
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        defer { close(listener.descriptor) }
        let client = try RootgateClient(listener.endpoint, configuration: .init(requestTimeout: .milliseconds(150)))
        await #expect(throws: ServiceError(.deadlineExceeded, "")) { try await client.ping() }
    }

    @Test(arguments: [Duration.seconds(4000), .seconds(400 * 365 * 86_400), .seconds(Int64.max / 4)])
    func whoHasAllTheTimeThereIsGetsAnAnswer(timeout: Duration) async throws {
        let directory = ScratchDirectory()
        let running = try service(directory)
        let client = try RootgateClient(
            running.endpoints[0], configuration: .init(requestTimeout: timeout, connectTimeout: timeout))
        try await client.ping()
        _ = running.shutDown()
    }

    @Test func aCancelledTaskStopsWaiting() async throws {
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        defer { close(listener.descriptor) }
        let client = try RootgateClient(listener.endpoint, configuration: .init(requestTimeout: patience))
        let task = Task { try await client.ping() }
        try await Task.sleep(for: .milliseconds(100))
        task.cancel()
        await #expect(throws: ServiceError(.cancelled, "")) { try await task.value }
    }

    @Test func aClosedClientSaysSo() async throws {
        let directory = ScratchDirectory()
        let running = try service(directory)
        let client = try RootgateClient(running.endpoints[0], configuration: .init(requestTimeout: patience))
        try await client.ping()
        client.close()
        await #expect(throws: ServiceError(.connectionLost, "")) { try await client.ping() }
        _ = running.shutDown()
    }

    @Test func countsOverALimitAreRefusedBeforeTheyAreSent() async throws {
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

    @Test func theServiceSaysWhatItIs() async throws {
        let directory = ScratchDirectory()
        let running = try service(directory)
        let hello = try await RootgateClient(running.endpoints[0], configuration: .init(requestTimeout: patience))
            .hello()
        #expect(hello.version == 1)
        #expect(hello.software == "rootgate \(Service.version)")
        #expect(hello.limits[1] == UInt64(Limits.frameBodyBytesMax))
        #expect(hello.limits.count == 14)
        _ = running.shutDown()
    }
}
