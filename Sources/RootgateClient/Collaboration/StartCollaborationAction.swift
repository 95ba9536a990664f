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
    /// What was prepared or may have been, to be undone when the action fails.
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
        let prepared = preparations.withLock { $0.compactMap(\.collaboration) }
        let isPrepared = prepared.isEmpty || prepared.contains(collaborationIdentifier)
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
    /// Throws the service's errors, and `cancelled` when the action is over. What was prepared is undone then. While it
    /// is not known whether there is something to undo, the action fails with `notUndone`.
    public func prepare(
        with client: RootgateClient, owner: Account, ownerIdentity: PersonIdentity? = nil,
        nonceWindowSeconds: UInt32? = nil
    ) async throws(ServiceError) -> PrepareCollaboration.Answer {
        let over = ServiceError(.cancelled, "the action is over")
        // As default options, the choice counts for a new collaboration, and changes none that existed before.
        var metadata = collaborationMetadata
        metadata.defaultShareOptions = metadata.shareOptions
        metadata.userSelectedShareOptions = nil
        var preparation = Preparation(
            client: client, ownerIdentity: ownerIdentity,
            start: Preparation.Step(
                PrepareCollaboration(owner: owner, metadata: metadata, nonceWindowSeconds: nonceWindowSeconds)))
        // Each step is noted before it is sent: an answer may never come, and the action may end meanwhile.
        note(preparation)
        guard !isComplete else {
            forget(preparation)
            throw over
        }
        var answer: PrepareCollaboration.Answer
        do throws(ServiceError) {
            answer = try await preparation.start.carryOut(by: client)
            note(preparation)
            if answer.isNew {
                try await claimAtOnce(preparation)
            } else if var chosen = collaborationMetadata.userSelectedShareOptions {
                chosen.dropEmptySummary()
                let former = try await client.send(ReadDetails(of: answer.collaborationIdentifier)).shareOptions
                let choice = PrepareCollaboration(
                    owner: owner, metadata: collaborationMetadata, nonceWindowSeconds: nonceWindowSeconds)
                var replacement = Preparation.Replacement(
                    former: former, chosen: chosen, choice: Preparation.Step(choice))
                preparation.replacement = replacement
                note(preparation)
                if await hasFailed {
                    preparation.replacement = nil
                    throw over
                }
                defer { preparation.replacement = replacement }
                answer = try await replacement.choice.carryOut(by: client)
            }
            note(preparation)
            // The action may have ended while the service prepared.
            if await hasFailed { throw over }
        } catch {
            note(preparation)
            if await preparation.undo() { forget(preparation) }
            throw error
        }
        return answer
    }

    /// Whether the action has ended with a failure.
    private var hasFailed: Bool {
        get async {
            guard isComplete, case .failure = await settlement.result() else { return false }
            return true
        }
    }

    /// Claims the owner's identity in a new collaboration. It is abandoned as a whole when that fails.
    private func claimAtOnce(_ preparation: Preparation) async throws(ServiceError) {
        do throws(UnansweredChange) {
            try await preparation.claimOwnership()
        } catch {
            throw error.cause
        }
    }

    /// Notes what would have to be undone, in place of what was known of it before.
    private func note(_ preparation: Preparation) {
        preparations.withLock { preparations in
            if let place = preparations.firstIndex(where: { $0.start.isSame(as: preparation.start) }) {
                preparations[place] = preparation
            } else {
                preparations.append(preparation)
            }
        }
    }

    /// Nothing of it is left to undo.
    private func forget(_ preparation: Preparation) {
        preparations.withLock { preparations in
            preparations.removeAll { $0.start.isSame(as: preparation.start) }
        }
    }

    /// The preparation of that collaboration; `nil` when the handler has started it in another way.
    func preparation(of collaboration: CollaborationIdentifier) -> Preparation? {
        preparations.withLock { $0.first { $0.collaboration == collaboration } }
    }

    /// Claims the owner's identity in a collaboration that existed before the action prepared it.
    ///
    /// Throws `failed` when the service refuses it, and `notUndone` when it is not known whether it is claimed, or when
    /// an earlier preparation's identity is. What was prepared is undone then; see `undoPreparations`.
    func claimOwnership(
        of collaboration: CollaborationIdentifier, removing people: [PersonIdentity] = []
    ) async throws(CollaborationActionFailure) {
        let existing = preparations.withLock { $0.filter { $0.collaboration == collaboration && !$0.isNew } }
        var hasClaimed = false
        do throws(UnansweredChange) {
            for preparation in existing {
                try await preparation.claimOwnership()
                hasClaimed = hasClaimed || preparation.ownerIdentity != nil
            }
        } catch {
            let isUndone = await undoPreparations(removing: people)
            throw isUndone && !error.isOpen && !hasClaimed ? .failed : .notUndone
        }
    }

    /// Undoes what was prepared, except for one collaboration. `people` are removed from what existed before, too.
    /// False when something was left, or when that is not known.
    ///
    /// The service knows a start by its owner and its local identifier, which all preparations of an action have in
    /// common. So those of the kept collaboration's owner are kept, too.
    func undoPreparations(
        except kept: CollaborationIdentifier? = nil, removing people: [PersonIdentity] = []
    ) async -> Bool {
        let undone = preparations.withLock { preparations in
            let owner = preparations.first { kept != nil && $0.collaboration == kept }?.owner
            let undone = preparations.filter { $0.owner != owner }
            preparations.removeAll { $0.owner != owner }
            return undone
        }
        var isClean = true
        for preparation in undone {
            isClean = await preparation.undo(except: kept, removing: people) && isClean
        }
        return isClean
    }
}
