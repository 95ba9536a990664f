import Core
import Foundation
import Identity
import RootgateClient
import Server
import TestSupport
import Transport

/// A person with devices, who has an identity of their own in each collaboration.
final class SimulatedPerson: Sendable {
    let account: Account
    let name: String
    private let person: Person
    private let identities = Lock<[CollaborationIdentifier: SimulatedIdentity]>([:])

    init(_ name: String, devices: Int = 1) {
        self.name = name
        // The names that tests give are names of accounts.
        account = Account(name)!
        person = Person(deviceCount: devices)
    }

    var deviceCount: Int { person.devices.count }

    fileprivate func secrets(in collaboration: CollaborationIdentifier) throws(ServiceError) -> SimulatedIdentity {
        if let known = identities.withLock({ $0[collaboration] }) { return known }
        let fresh = try person.identity(in: collaboration)
        return identities.withLock { identities in
            if let known = identities[collaboration] { return known }
            identities[collaboration] = fresh
            return fresh
        }
    }

    func identity(in collaboration: CollaborationIdentifier) throws(ServiceError) -> PersonIdentity {
        PersonIdentity(rootHash: try secrets(in: collaboration).rootHash)
    }

    func device(_ index: Int = 0) -> SimulatedDevice { SimulatedDevice(person: self, index: index) }

    /// What the person's device gets when it asks for access.
    func open(
        _ collaboration: CollaborationIdentifier, device index: Int = 0, _ client: RootgateClient
    ) async throws -> OpenDecision {
        let challenge = try await client.challenges(1).challenges[0]
        let proof = try await device(index).signedIdentityProof(in: collaboration, signing: challenge)
        return try await client.open(proof, in: collaboration)
    }
}

/// One device of a simulated person.
struct SimulatedDevice: IdentityDevice {
    let person: SimulatedPerson
    let index: Int

    func signedIdentityProof(
        in collaboration: CollaborationIdentifier, signing data: [UInt8]
    ) async throws(ServiceError) -> SignedIdentityProof {
        try person.secrets(in: collaboration).proof(ofDevice: index, signing: data)
    }
}
