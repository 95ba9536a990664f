package import Core
import Hashing
package import RootgateClient

/// The collaborations of a load at one service, from their start to their end.
package struct SharedCollaborations: Sendable {
    package let identifiers: [CollaborationIdentifier]
    /// Whether they are collaborations of the collaboration layer, with participants. Otherwise they are root sets.
    private let haveParticipants: Bool
    private let client: RootgateClient

    /// Starts `count` collaborations. `progress` is shown how many there are.
    ///
    /// Throws what the service throws: `noLinkBase` when collaborations of the layer can't have links there.
    package init(
        _ count: Int, haveParticipants: Bool, _ client: RootgateClient, _ progress: ProgressMeter = .silent
    ) async throws(ServiceError) {
        self.haveParticipants = haveParticipants
        self.client = client
        let run = "load-\(MutationIdentifier.random())"
        guard let owner = Account(run) else {
            throw ServiceError(.internalFault, "an account's name is not valid")
        }
        var identifiers: [CollaborationIdentifier] = []
        for number in 0..<count {
            progress.show("\(number) of \(count)", done: Double(number) / Double(count))
            do throws(ServiceError) {
                identifiers.append(
                    haveParticipants
                        ? try await SharedCollaborations.prepare(number, owner, client)
                        : try await SharedCollaborations.create("\(run)-\(number)", client))
            } catch {
                try? await SharedCollaborations.end(identifiers, haveParticipants: haveParticipants, client)
                throw error
            }
        }
        self.identifiers = identifiers
    }

    private static func create(
        _ name: String, _ client: RootgateClient
    ) async throws(ServiceError) -> CollaborationIdentifier {
        guard let identifier = CollaborationIdentifier(name) else {
            throw ServiceError(.internalFault, "a collaboration's name is not valid")
        }
        try await client.createCollaboration(identifier)
        return identifier
    }

    private static func prepare(
        _ number: Int, _ owner: Account, _ client: RootgateClient
    ) async throws(ServiceError) -> CollaborationIdentifier {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "\(number)"))
        metadata.title = "Document \(number)"
        metadata.defaultPermission = .readWrite
        return try await client.send(PrepareCollaboration(owner: owner, metadata: metadata)).collaborationIdentifier
    }

    /// Lets the people of `population` take part, whose collaborations are these. `progress` is shown how many do.
    ///
    /// Throws what the service throws.
    package func add(_ population: Population, _ progress: ProgressMeter = .silent) async throws(ServiceError) {
        let portion = haveParticipants ? Limits.participantsPerRequestMax : Limits.rootsPerRequestMax
        var added = 0
        for (place, identifier) in identifiers.enumerated() {
            let roots = population.rootHashes(of: place)
            for start in stride(from: 0, to: roots.count, by: portion) {
                let roots = Array(roots[start..<min(roots.count, start + portion)])
                if haveParticipants {
                    let people = roots.map { NewParticipant(PersonIdentity(rootHash: $0), displayName: "Ana") }
                    _ = try await client.send(AddParticipants(people, to: identifier))
                } else {
                    _ = try await client.addRoots(roots, to: identifier)
                }
                added += roots.count
                progress.show(
                    "\(added) of \(population.people.count)", done: Double(added) / Double(population.people.count))
            }
        }
    }

    /// Grants for the first devices of up to `count` people, at least of one person of each collaboration.
    ///
    /// Throws what the service throws, and `grantRefused` when it lets somebody not in.
    package func takeGrants(_ count: Int, for population: Population) async throws(ServiceError) -> [HeldGrant] {
        let people = population.people.indices.prefix(max(count, identifiers.count))
        var held: [HeldGrant] = []
        while held.count < people.count {
            let portion = people[held.count..<min(people.count, held.count + SharedCollaborations.opensAtOnce)]
            let challenges = try await client.challenges(portion.count).challenges
            var requests: [AccessRequest] = []
            for (person, challenge) in zip(portion, challenges) {
                requests.append(
                    AccessRequest(
                        collaboration: identifiers[population.collaboration(ofPerson: person)],
                        proof: try population.people[person].proof(ofDevice: 0, signing: challenge)))
            }
            let decisions = try await client.open(requests)
            for (person, decision) in zip(portion, decisions) {
                guard let grant = decision.grant else {
                    throw ServiceError(.grantRefused, "a participant was not let in: \(decision.verdict.name)")
                }
                let key = SHA256.hash(population.people[person].publicKeys[0]).bytes
                held.append(
                    HeldGrant(
                        collaboration: population.collaboration(ofPerson: person),
                        deviceKey: Array(key.prefix(Limits.fingerprintBytes)), grant: grant))
            }
        }
        return held
    }

    private static let opensAtOnce = 256

    /// Ends all of them.
    ///
    /// Throws what the service throws.
    package func end() async throws(ServiceError) {
        try await SharedCollaborations.end(identifiers, haveParticipants: haveParticipants, client)
    }

    private static func end(
        _ identifiers: [CollaborationIdentifier], haveParticipants: Bool, _ client: RootgateClient
    ) async throws(ServiceError) {
        for identifier in identifiers {
            if haveParticipants {
                _ = try await client.send(StopSharing(identifier))
            } else {
                try await client.dropCollaboration(identifier)
            }
        }
    }
}
