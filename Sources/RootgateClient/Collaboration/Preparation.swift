import Collaboration
import Core

/// A collaboration that an action has prepared on the service, and how that is undone.
struct Preparation: Sendable {
    /// How often undoing is tried while other people come in at the same time.
    private static let attemptsMax = 4

    let client: RootgateClient
    let owner: Account
    let ownerIdentity: PersonIdentity?
    let localIdentifier: LocalCollaborationIdentifier
    let collaboration: CollaborationIdentifier
    /// Whether the action has started the collaboration. One that existed before is never ended.
    let isNew: Bool

    /// Those of these people who take no part yet.
    func newcomers(among people: [PersonIdentity]) async throws(ServiceError) -> [PersonIdentity] {
        var newcomers: [PersonIdentity] = []
        for start in stride(from: 0, to: people.count, by: Limits.rootsPerRequestMax) {
            let some = people[start...].prefix(Limits.rootsPerRequestMax)
            let isInSet = try await client.testRoots(some.map(\.rootHash), in: collaboration)
            newcomers += zip(some, isInSet).filter { !$0.1 }.map(\.0)
        }
        return newcomers
    }

    /// Removes these people, and the collaboration if the action has started it and no other person takes part. False
    /// when the service has not done so.
    func undo(removing people: [PersonIdentity] = []) async -> Bool {
        let people = people.filter { $0 != ownerIdentity }
        for _ in 0..<Preparation.attemptsMax {
            do throws(ServiceError) {
                for start in stride(from: 0, to: people.count, by: Limits.participantsPerRequestMax) {
                    let some = Array(people[start...].prefix(Limits.participantsPerRequestMax))
                    _ = try await client.send(RemoveParticipants(some, from: collaboration))
                }
                if isNew {
                    // Abandoning names the start, not the collaboration: an ended one may have a successor.
                    _ = try await client.send(FindHighlight(collaboration))
                    _ = try await client.send(AbandonCollaboration(owner: owner, localIdentifier: localIdentifier))
                }
                return true
            } catch {
                switch error.code {
                case .unknownCollaboration: return true
                // Somebody came in after the removal: perhaps one of these people.
                case .notPermitted: continue
                default: return false
                }
            }
        }
        return false
    }
}
