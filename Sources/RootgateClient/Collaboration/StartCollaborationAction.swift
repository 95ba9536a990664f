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
    /// Functions that undo the preparation when the action fails.
    private let undoing = Mutex<[@Sendable () async -> Void]>([])

    init(_ metadata: CollaborationMetadata) {
        collaborationMetadata = metadata
    }

    /// Whether the action was fulfilled, has failed, or its time is over.
    public var isComplete: Bool { settlement.isEnded }

    /// Ends the action with success; false when it had already ended.
    @discardableResult
    public func fulfill(using url: URL, collaborationIdentifier: CollaborationIdentifier) -> Bool {
        settlement.end(
            .success(StartedCollaboration(url: url, collaborationIdentifier: collaborationIdentifier)))
    }

    /// Ends the action with a failure; false when it had already ended.
    @discardableResult
    public func fail() -> Bool {
        settlement.end(.failure(.failed))
    }

    /// Prepares the collaboration on the service, with the metadata's options. When the action fails later, the
    /// preparation is undone.
    ///
    /// Throws the service's errors, and `cancelled` when the action is over.
    public func prepare(
        with client: RootgateClient, owner: Account, ownerIdentity: PersonIdentity? = nil
    ) async throws(ServiceError) -> PrepareCollaboration.Answer {
        let over = ServiceError(.cancelled, "the action is over")
        guard !isComplete else { throw over }
        let local = collaborationMetadata.localIdentifier
        let undo: @Sendable () async -> Void = {
            _ = try? await client.send(AbandonCollaboration(owner: owner, localIdentifier: local))
        }
        let request = PrepareCollaboration(
            owner: owner, metadata: collaborationMetadata, ownerIdentity: ownerIdentity)
        let identifier = MutationIdentifier.random()
        let answer: PrepareCollaboration.Answer
        do throws(ServiceError) {
            answer = try await client.send(request, identifier: identifier)
        } catch {
            // Without an answer the client can't know whether the collaboration was prepared. The same request with the
            // same identifier tells. It does not change a collaboration that existed before.
            if error.origin == .local, let late = try? await client.send(request, identifier: identifier),
                late.isNew
            {
                await undo()
            }
            throw error
        }
        if answer.isNew { undoing.withLock { $0.append(undo) } }
        // The action may have ended while the service prepared.
        if isComplete, case .failure = await settlement.result() {
            await undoPreparation()
            throw over
        }
        return answer
    }

    func undoPreparation() async {
        let steps = undoing.withLock { steps in
            defer { steps = [] }
            return steps
        }
        for step in steps { await step() }
    }
}
