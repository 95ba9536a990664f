import Synchronization

/// Carries out actions for the system. Apple: `SWCollaborationActionHandler`.
public protocol CollaborationActionHandler: AnyObject, Sendable {
    /// Content is about to be shared. Prepare the collaboration on the service, then fulfill the action, or fail it.
    func collaborationCoordinator(_ coordinator: CollaborationCoordinator, handle action: StartCollaborationAction)
    /// People joined or left the conversation. Add and remove participants, then fulfill the action, or fail it.
    func collaborationCoordinator(
        _ coordinator: CollaborationCoordinator, handle action: UpdateCollaborationParticipantsAction)
}

/// Passes actions to their handler. An action ends when its handler ends it or at its deadline. Apple:
/// `SWCollaborationCoordinator`.
public final class CollaborationCoordinator: Sendable {
    /// The coordinator of a whole program.
    public static let shared = CollaborationCoordinator()

    private struct Handler {
        weak var handler: (any CollaborationActionHandler)?
    }

    private let handler = Mutex(Handler())

    /// A coordinator of its own, for tests.
    public init() {}

    /// The handler of actions, which is held weakly.
    public var actionHandler: (any CollaborationActionHandler)? {
        get { handler.withLock { $0.handler } }
        set { handler.withLock { $0.handler = newValue } }
    }

    /// Starts a collaboration, as the system does when a person shares content.
    ///
    /// Throws how the action failed. Then the collaboration was removed from the service, if the action has started it.
    public func startCollaboration(
        with metadata: CollaborationMetadata, deadline: Duration = .seconds(30)
    ) async throws(CollaborationActionFailure) -> StartedCollaboration {
        guard let actionHandler else { throw .noHandler }
        let action = StartCollaborationAction(metadata)
        actionHandler.collaborationCoordinator(self, handle: action)
        let result = await end(of: action.settlement, within: deadline)
        if case .failure = result { await action.undoPreparation() }
        return try result.get()
    }

    /// Adds and removes participants, as the system does when people join or leave the conversation.
    ///
    /// Throws how the action failed.
    public func updateParticipants(
        of metadata: CollaborationMetadata, adding added: [PersonIdentity] = [],
        removing removed: [PersonIdentity] = [], deadline: Duration = .seconds(30)
    ) async throws(CollaborationActionFailure) {
        guard let actionHandler else { throw .noHandler }
        let action = UpdateCollaborationParticipantsAction(metadata, added: added, removed: removed)
        actionHandler.collaborationCoordinator(self, handle: action)
        _ = try await end(of: action.settlement, within: deadline).get()
    }

    private func end<Value: Sendable>(
        of settlement: Settlement<Value>, within deadline: Duration
    ) async -> Result<Value, CollaborationActionFailure> {
        let timer = Task {
            try await Task.sleep(for: deadline)
            settlement.end(.failure(.deadlineExceeded))
        }
        defer { timer.cancel() }
        return await settlement.result()
    }
}
