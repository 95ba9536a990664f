import Core
import Foundation
import Identity
import RootgateClient
import Server
import TestSupport
import Transport

/// A collaboration on a service with one person who has devices.
struct SmallCollaboration {
    let collaboration: CollaborationIdentifier
    let person: SimulatedIdentity
    let client: RootgateClient

    init(
        _ client: RootgateClient, named name: String = "small", devices: Int = 3, policy: ProofPolicy = .challenge
    ) async throws {
        guard let collaboration = CollaborationIdentifier(name) else {
            throw ServiceError(.internalFault, "not an identifier")
        }
        self.collaboration = collaboration
        self.client = client
        person = try Person(deviceCount: devices).identity(in: collaboration)
        try await client.createCollaboration(collaboration, policy: policy)
        try await client.addRoots([person.rootHash], to: collaboration)
    }

    func proof(device: Int = 0) async throws -> SignedIdentityProof {
        let challenge = try await client.challenges(1).challenges[0]
        return try person.proof(ofDevice: device, signing: challenge)
    }

    func proofs(_ count: Int) async throws -> [AccessRequest] {
        try await client.challenges(count).challenges.enumerated().map { number, challenge in
            AccessRequest(
                collaboration: collaboration,
                proof: try person.proof(ofDevice: number % person.keys.count, signing: challenge))
        }
    }
}
