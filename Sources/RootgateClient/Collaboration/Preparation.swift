import Collaboration
import Core

/// A collaboration that an action prepares on the service, and how that is undone.
struct Preparation: Sendable {
    /// How often undoing is tried while other people come in at the same time.
    private static let attemptsMax = 4

    let client: RootgateClient
    /// As whom the owner takes part; `nil`: the action does not say.
    let ownerIdentity: PersonIdentity?
    /// The request that starts the collaboration. It changes nothing in one that existed before.
    var start: Step
    /// The choice of options that the action replaces in a collaboration that existed before; `nil`: it replaces none.
    var replacement: Replacement?

    /// Share options before and after the action's choice.
    struct Replacement: Sendable {
        let former: ShareOptions
        let chosen: ShareOptions
        /// The request that makes the choice.
        var choice: Step
    }

    var owner: Account { start.request.owner }

    /// The collaboration; `nil`: the service has not told it.
    var collaboration: CollaborationIdentifier? {
        if case .answered(let collaboration, _) = start.outcome { collaboration } else { nil }
    }

    /// Whether the action has started the collaboration. One that existed before is never ended.
    var isNew: Bool {
        if case .answered(_, let isNew) = start.outcome { isNew } else { false }
    }

    /// Those of these people who take no part in the collaboration yet.
    func newcomers(
        among people: [PersonIdentity], in collaboration: CollaborationIdentifier
    ) async throws(ServiceError) -> [PersonIdentity] {
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
    func claimOwnership() async throws(UnansweredChange) {
        guard let ownerIdentity, let collaboration else { return }
        _ = try await client.sendAgainIfOpen(ClaimOwnership(of: collaboration, by: owner, as: ownerIdentity))
    }

    /// Removes these people, and the collaboration if the action has started it and no other person takes part. A
    /// collaboration that existed before gets its options back. False when the service has not done so, or when it is
    /// not known what there is to undo.
    ///
    /// What is open is sent once more, because only the service knows. `kept`: a collaboration that stays as it is.
    func undo(except kept: CollaborationIdentifier? = nil, removing people: [PersonIdentity] = []) async -> Bool {
        switch await start.settled(by: client) {
        case .open: return false
        case .withoutEffect: return true
        case .answered(let collaboration, let isNew):
            guard collaboration != kept else { return true }
            return await undo(collaboration, isNew: isNew, removing: people)
        }
    }

    private func undo(
        _ collaboration: CollaborationIdentifier, isNew: Bool, removing people: [PersonIdentity]
    ) async -> Bool {
        // The owner leaves with the collaboration that the action has started, and not before.
        let people = isNew ? people.filter { $0 != ownerIdentity } : people
        var areOptionsBack = false
        for _ in 0..<Preparation.attemptsMax {
            do throws(ServiceError) {
                if !areOptionsBack { areOptionsBack = try await restoreOptions(of: collaboration) }
                for start in stride(from: 0, to: people.count, by: Limits.participantsPerRequestMax) {
                    let some = Array(people[start...].prefix(Limits.participantsPerRequestMax))
                    _ = try await change(RemoveParticipants(some, from: collaboration))
                }
                if isNew {
                    // Abandoning names the start, not the collaboration: an ended one may have a successor.
                    _ = try await client.send(FindHighlight(collaboration))
                    let local = start.request.metadata.localIdentifier
                    _ = try await change(AbandonCollaboration(owner: owner, localIdentifier: local))
                }
                return areOptionsBack
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

    /// Gives the collaboration the options that it had before, unless somebody has changed the action's choice since.
    /// False when the choice may still be made.
    private func restoreOptions(of collaboration: CollaborationIdentifier) async throws(ServiceError) -> Bool {
        guard let replacement, replacement.former != replacement.chosen else { return true }
        if case .withoutEffect = replacement.choice.outcome { return true }
        if try await restore(replacement, of: collaboration) { return true }
        guard case .open = replacement.choice.outcome else { return true }
        // The choice is not there. Once it was repeated, the first request can't make it any more.
        switch await replacement.choice.settled(by: client) {
        case .open: return false
        case .withoutEffect: return true
        case .answered:
            _ = try await restore(replacement, of: collaboration)
            return true
        }
    }

    /// False when the options are others than the action's choice.
    private func restore(
        _ replacement: Replacement, of collaboration: CollaborationIdentifier
    ) async throws(ServiceError) -> Bool {
        do throws(ServiceError) {
            _ = try await change(
                UpdateShareOptions(collaboration, replacing: replacement.former, ifPresent: replacement.chosen))
            return true
        } catch {
            guard error.code == .optionConflict else { throw error }
            return false
        }
    }

    /// Sends a request that undoes something, twice if need be.
    private func change<Request: CollaborationRequest>(
        _ request: Request
    ) async throws(ServiceError) -> Request.Answer {
        do throws(UnansweredChange) {
            return try await client.sendAgainIfOpen(request)
        } catch {
            throw error.cause
        }
    }
}
