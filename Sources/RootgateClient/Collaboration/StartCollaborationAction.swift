public import Core
public import Foundation
import Synchronization

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
    private let preparations = Mutex<[Preparation]>([])

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
    /// the recipients can't be added, the preparation is undone.
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
        let request = PrepareCollaboration(
            owner: owner, metadata: collaborationMetadata, ownerIdentity: ownerIdentity,
            nonceWindowSeconds: nonceWindowSeconds)
        let identifier = MutationIdentifier.random()
        let answer: PrepareCollaboration.Answer
        do throws(ServiceError) {
            answer = try await client.send(request, identifier: identifier)
        } catch {
            // Without an answer the client can't know whether the collaboration was prepared. The same request with the
            // same identifier tells. It does not change a collaboration that existed before.
            if error.origin == .local, let late = try? await client.send(request, identifier: identifier) {
                _ = await preparation(late).undo()
            }
            throw error
        }
        preparations.withLock { $0.append(preparation(answer)) }
        // The action may have ended while the service prepared.
        if isComplete, case .failure = await settlement.result() {
            _ = await undoPreparations()
            throw over
        }
        return answer
    }

    /// The preparation of that collaboration; `nil` when the handler has started it in another way.
    func preparation(of collaboration: CollaborationIdentifier) -> Preparation? {
        preparations.withLock { $0.first { $0.collaboration == collaboration } }
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
