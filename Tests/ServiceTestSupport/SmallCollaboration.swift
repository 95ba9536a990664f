package import Core
package import Identity
package import RootgateClient

/// A collaboration on a service with one person who has devices.
package struct SmallCollaboration {
    package let collaboration: CollaborationIdentifier
    package let person: SimulatedIdentity
    package let client: RootgateClient

    package init(
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

    package func proof(device: Int = 0) async throws -> SignedIdentityProof {
        let challenge = try await client.challenges(1).challenges[0]
        return try person.proof(ofDevice: device, signing: challenge)
    }

    package func proofs(_ count: Int) async throws -> [AccessRequest] {
        try await client.challenges(count).challenges.enumerated().map { number, challenge in
            AccessRequest(
                collaboration: collaboration,
                proof: try person.proof(ofDevice: number % person.keys.count, signing: challenge))
        }
    }
}
