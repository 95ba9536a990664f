import Core
import Identity
import Secrets
import Server
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport

@testable import RootgateClient

/// Services with one secret, which know each other's challenges and spend only their own, as those of a cluster do.
@Suite("Proofs go to the service that has issued their challenge")
struct IssuersTests {
    private let scratch = ScratchDirectory()
    private let services: [TestService]
    private let small: SmallCollaboration

    init() async throws {
        let path = scratch.path + "/secret"
        _ = try SecretFile(path: path).rotate(at: 1_800_000_000_000)
        services = try (0..<3).map { _ in try TestService { $0.secretPath = path } }
        small = try await SmallCollaboration(services[0].client())
        for service in services.dropFirst() {
            let client = try service.client()
            try await client.createCollaboration(small.collaboration)
            try await client.addRoots([small.person.rootHash], to: small.collaboration)
        }
    }

    /// A client whose first address is that of a service.
    private func client(from first: Int) throws -> RootgateClient {
        let endpoints = services.map(\.endpoint)
        return try RootgateClient(
            Array(endpoints[first...] + endpoints[..<first]), configuration: .init(requestTimeout: patience))
    }

    private func proof(from service: Int) async throws -> SignedIdentityProof {
        try small.person.proof(ofDevice: 0, signing: try await services[service].client().challenge())
    }

    @Test("A lone proof is granted once, whichever service is asked first", arguments: [0, 1, 2])
    func lone(first: Int) async throws {
        let client = try client(from: first)
        for service in services.indices {
            let proof = try await proof(from: service)
            #expect(try await client.verify(proof, in: small.collaboration) == .granted)
            #expect(try await client.verify(proof, in: small.collaboration) == .challengeReplayed)
        }
    }

    @Test("The verdicts on the proofs of a batch come in its order, with root hashes")
    func batches() async throws {
        let client = try client(from: 0)
        var requests: [AccessRequest] = []
        for service in [1, 0, 2, 2, 0, 1, 1] {
            requests.append(
                AccessRequest(collaboration: small.collaboration, proof: try await proof(from: service)))
        }
        // One whose challenge nobody has issued, and one that nobody may open.
        requests[3].proof.data[20] ^= 1
        requests[5].collaboration = try #require(CollaborationIdentifier("elsewhere"))
        let decisions = try await client.verify(requests, wantsRoots: true)
        let expected: [Verdict] = [
            .granted, .granted, .granted, .challengeForged, .granted, .unknownCollaboration, .granted,
        ]
        #expect(decisions.map(\.verdict) == expected)
        for (decision, verdict) in zip(decisions, expected) where verdict == .granted {
            #expect(decision.rootHash == small.person.rootHash)
        }
        #expect(try await client.open(requests[0].proof, in: small.collaboration).verdict == .challengeReplayed)
        #expect(
            try await client.open(try await proof(from: 2), in: small.collaboration, wantsOptions: true).verdict
                == .granted)
    }

    @Test("A challenge whose service is gone stays elsewhere, and one of a service that has restarted, too")
    func gone() async throws {
        let client = try client(from: 0)
        let (lost, restarted) = (try await proof(from: 2), try await proof(from: 1))
        services[2].stop()
        try services[1].restart()
        #expect(try await client.verify(lost, in: small.collaboration) == .challengeElsewhere)
        #expect(try await client.verify(restarted, in: small.collaboration) == .challengeElsewhere)
        // Its new number is learnt, some time after the last question.
        let fresh = try await proof(from: 1)
        #expect(try await comesTrue { try await client.verify(fresh, in: small.collaboration) == .granted })
    }

    @Test("When the client is closed, there is no way to a service that was known")
    func closed() async throws {
        let issuers = Issuers(try services.map { try Dialer($0.endpoint, tls: nil) }, .init())
        let challenge = try await services[1].client().challenge()
        let number = try #require(Issuers.number(in: challenge))
        #expect(Issuers.number(in: Array(challenge.dropLast())) == nil)
        #expect(await issuers.connector(of: number, until: .now + patience) != nil)
        issuers.close()
        #expect(await issuers.connector(of: number, until: .now + patience) == nil)
    }

    @Test("A client with one address leaves the verdict to its caller")
    func single() async throws {
        let client = try services[0].client()
        #expect(try await client.verify(try await proof(from: 1), in: small.collaboration) == .challengeElsewhere)
    }
}
