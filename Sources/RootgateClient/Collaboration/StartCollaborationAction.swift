public import Core
public import Foundation

/// A collaboration that was started.
public struct StartedCollaboration: Hashable, Sendable {
    /// The universal link that leads to the collaboration.
    public let url: URL
    /// The identifier by which all devices know the collaboration.
    public let collaborationIdentifier: CollaborationIdentifier
}

/// Asks the handler to start a collaboration. The handler calls `fulfill` or `fail`; only the first call counts. Apple:
/// `SWStartCollaborationAction`.
public final class StartCollaborationAction: Sendable {
    /// The content to be shared, and the options that were chosen.
    public let collaborationMetadata: CollaborationMetadata
    let settlement = Settlement<StartedCollaboration>()
    /// What was prepared, to be undone when the action fails.
    private let preparations = Lock<[Preparation]>([])

    init(_ metadata: CollaborationMetadata) {
        collaborationMetadata = metadata
    }

    /// Whether the action was fulfilled, has failed, or its time is over.
    public var isComplete: Bool { settlement.isEnded }

    /// Ends the action with success; false when it had already ended.
    ///
    /// The identities of all participants derive from the identifier. So when the action has prepared a collaboration,
    /// the identifier must be that one's: another one ends the action with a failure, and returns false.
    @discardableResult
    public func fulfill(using url: URL, collaborationIdentifier: CollaborationIdentifier) -> Bool {
        let isPrepared = preparations.withLock { preparations in
            preparations.isEmpty || preparations.contains { $0.collaboration == collaborationIdentifier }
        }
        guard isPrepared else {
            settlement.end(.failure(.otherCollaboration))
            return false
        }
        return settlement.end(
            .success(StartedCollaboration(url: url, collaborationIdentifier: collaborationIdentifier)))
    }

    /// Ends the action with a failure; false when it had already ended.
    @discardableResult
    public func fail() -> Bool {
        settlement.end(.failure(.failed))
    }

    /// Prepares the collaboration on the service, with the metadata's options. When the action fails later, or when
    /// the recipients can't be added, the preparation is undone: a new collaboration is removed, and one that existed
    /// before gets its options back.
    ///
    /// `ownerIdentity` becomes the owner of a new collaboration at once. In one that existed before it is claimed only
    /// when the sharing has succeeded, because a claim can't be taken back; if it is refused then, the sharing fails.
    ///
    /// Throws the service's errors, and `cancelled` when the action is over.
    public func prepare(
        with client: RootgateClient, owner: Account, ownerIdentity: PersonIdentity? = nil,
        nonceWindowSeconds: UInt32? = nil
    ) async throws(ServiceError) -> PrepareCollaboration.Answer {
        let over = ServiceError(.cancelled, "the action is over")
        guard !isComplete else { throw over }
        let local = collaborationMetadata.localIdentifier
        func preparation(_ answer: PrepareCollaboration.Answer) -> Preparation {
            Preparation(
                client: client, owner: owner, ownerIdentity: ownerIdentity, localIdentifier: local,
                collaboration: answer.collaborationIdentifier, isNew: answer.isNew)
        }
        // As default options, the choice counts for a new collaboration, and changes none that existed before.
        var metadata = collaborationMetadata
        metadata.defaultShareOptions = metadata.shareOptions
        metadata.userSelectedShareOptions = nil
        let request = PrepareCollaboration(owner: owner, metadata: metadata, nonceWindowSeconds: nonceWindowSeconds)
        let identifier = MutationIdentifier.random()
        var answer: PrepareCollaboration.Answer
        do throws(ServiceError) {
            answer = try await client.send(request, identifier: identifier)
        } catch {
            // Without an answer the client can't know whether the collaboration was prepared. The same request with the
            // same identifier tells. It does not change the options of a collaboration that existed before.
            if error.origin == .local, let late = try? await client.send(request, identifier: identifier) {
                _ = await preparation(late).undo()
            }
            throw error
        }
        var prepared = preparation(answer)
        if answer.isNew {
            do throws(ServiceError) {
                try await prepared.claimOwnership()
            } catch {
                _ = await prepared.undo()
                throw error
            }
        }
        if var chosen = collaborationMetadata.userSelectedShareOptions, !answer.isNew {
            chosen.dropEmptySummary()
            let former = try await client.send(ReadDetails(of: answer.collaborationIdentifier)).shareOptions
            prepared.replacement = Preparation.Replacement(former: former, chosen: chosen)
            let choice = PrepareCollaboration(
                owner: owner, metadata: collaborationMetadata, nonceWindowSeconds: nonceWindowSeconds)
            answer = try await choose(choice, of: prepared)
        }
        preparations.withLock { [prepared] in $0.append(prepared) }
        // The action may have ended while the service prepared.
        if isComplete, case .failure = await settlement.result() {
            _ = await undoPreparations()
            throw over
        }
        return answer
    }

    /// Chooses options in a collaboration that existed before. Without an answer the former ones are restored.
    private func choose(
        _ choice: PrepareCollaboration, of preparation: Preparation
    ) async throws(ServiceError) -> PrepareCollaboration.Answer {
        let identifier = MutationIdentifier.random()
        do throws(ServiceError) {
            return try await preparation.client.send(choice, identifier: identifier)
        } catch {
            // The same request once more: afterwards the first one can't be applied any more.
            if error.origin == .local,
                (try? await preparation.client.send(choice, identifier: identifier)) != nil
            {
                _ = await preparation.undo()
            }
            throw error
        }
    }

    /// The preparation of that collaboration; `nil` when the handler has started it in another way.
    func preparation(of collaboration: CollaborationIdentifier) -> Preparation? {
        preparations.withLock { $0.first { $0.collaboration == collaboration } }
    }

    /// Claims the owner's identity in a collaboration that existed before the action prepared it.
    ///
    /// Throws `failed` when the service refuses it, and `notUndone` when it is not known whether it is claimed. What
    /// was prepared is undone then; see `undoPreparations`.
    func claimOwnership(
        of collaboration: CollaborationIdentifier, removing people: [PersonIdentity] = []
    ) async throws(CollaborationActionFailure) {
        let existing = preparations.withLock { $0.filter { $0.collaboration == collaboration && !$0.isNew } }
        do throws(ServiceError) {
            for preparation in existing { try await preparation.claimOwnership() }
        } catch {
            let isUndone = await undoPreparations(removing: people)
            throw isUndone && error.origin == .service ? .failed : .notUndone
        }
    }

    /// Undoes what was prepared, except for one collaboration. `people` are removed from what existed before, too.
    /// False when something was left.
    ///
    /// The service knows a start by its owner and its local identifier, which all preparations of an action have in
    /// common. So those of the kept collaboration's owner are kept, too.
    func undoPreparations(
        except kept: CollaborationIdentifier? = nil, removing people: [PersonIdentity] = []
    ) async -> Bool {
        let undone = preparations.withLock { preparations in
            let owner = preparations.first { $0.collaboration == kept }?.owner
            let undone = preparations.filter { $0.owner != owner }
            preparations.removeAll { $0.owner != owner }
            return undone
        }
        var isClean = true
        for preparation in undone {
            isClean = await preparation.undo(removing: people) && isClean
        }
        return isClean
    }
}
