import Collaboration
import Core

/// A collaboration that an action has prepared on the service, and how that is undone.
struct Preparation: Sendable {
    /// How often undoing is tried while other people come in at the same time.
    private static let attemptsMax = 4

    let client: RootgateClient
    let owner: Account
    /// As whom the owner takes part; `nil`: the action does not say.
    let ownerIdentity: PersonIdentity?
    let localIdentifier: LocalCollaborationIdentifier
    let collaboration: CollaborationIdentifier
    /// Whether the action has started the collaboration. One that existed before is never ended.
    let isNew: Bool
    /// The choice of options that the action replaces in a collaboration that existed before; `nil`: it replaces none.
    var replacement: Replacement?

    /// Share options before and after the action's choice.
    struct Replacement: Sendable {
        let former: ShareOptions
        let chosen: ShareOptions
    }

    /// Those of these people who take no part yet.
    func newcomers(among people: [PersonIdentity]) async throws(ServiceError) -> [PersonIdentity] {
        var newcomers: [PersonIdentity] = []
        for start in stride(from: 0, to: people.count, by: Limits.participantsPerPageMax) {
            let some = Array(people[start...].prefix(Limits.participantsPerPageMax))
            let found = try await client.send(FindParticipants(some, in: collaboration)).participants
            let present = Set(found.filter { $0.state != .removed }.map(\.identity))
            newcomers += some.filter { !present.contains($0) }
        }
        return newcomers
    }

    /// Makes the identity of the preparation the owner, if it has one. A claim can't be taken back: so what existed
    /// before is claimed when everything else is done.
    ///
    /// Throws the service's errors. An error of this process leaves open whether the identity is claimed.
    func claimOwnership() async throws(ServiceError) {
        guard let ownerIdentity else { return }
        let claim = ClaimOwnership(of: collaboration, by: owner, as: ownerIdentity)
        let identifier = MutationIdentifier.random()
        do throws(ServiceError) {
            _ = try await client.send(claim, identifier: identifier)
        } catch {
            // Without an answer the same request tells.
            guard error.origin == .local else { throw error }
            _ = try await client.send(claim, identifier: identifier)
        }
    }

    /// Gives the collaboration the options that it had before, unless somebody has changed the action's choice since.
    private func restoreOptions() async throws(ServiceError) {
        guard let replacement, replacement.former != replacement.chosen else { return }
        let restoring = UpdateShareOptions(
            collaboration, replacing: replacement.former, ifPresent: replacement.chosen)
        do throws(ServiceError) {
            _ = try await client.send(restoring)
        } catch {
            guard error.code == .optionConflict else { throw error }
        }
    }

    /// Removes these people, and the collaboration if the action has started it and no other person takes part. A
    /// collaboration that existed before gets its options back. False when the service has not done so.
    func undo(removing people: [PersonIdentity] = []) async -> Bool {
        // The owner leaves with the collaboration that the action has started, and not before.
        let people = isNew ? people.filter { $0 != ownerIdentity } : people
        for _ in 0..<Preparation.attemptsMax {
            do throws(ServiceError) {
                try await restoreOptions()
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
