public import Collaboration
public import Core

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

    private let handler = Lock(Handler())

    /// A coordinator of its own, for tests.
    public init() {}

    /// The handler of actions, which is held weakly.
    public var actionHandler: (any CollaborationActionHandler)? {
        get { handler.withLock { $0.handler } }
        set { handler.withLock { $0.handler = newValue } }
    }

    /// Shares content, as the system does when a person sends the message: starts the collaboration, then adds the
    /// recipients. The second action's metadata has the identifier of the started collaboration.
    ///
    /// `recipients` returns the identities of the people to add. They derive from the collaboration's identifier.
    /// `deadline`: for each of the two actions. Undoing begins behind it.
    ///
    /// Throws how the sharing failed; then the message must not be sent. If the start's handler used
    /// ``StartCollaborationAction/prepare(with:owner:ownerIdentity:nonceWindowSeconds:)``, everything is undone: a new
    /// collaboration is removed; from an existing one, the recipients who took no part are removed, and it gets its
    /// former options back unless somebody has changed them since. The owner's identity is claimed in an existing
    /// collaboration when the recipients were added. Throws `notUndone` when the service could not be reached for that,
    /// and when it does not tell whether it has made a change.
    public func share(
        with metadata: CollaborationMetadata,
        adding recipients: @Sendable (CollaborationIdentifier) async throws -> [PersonIdentity],
        deadline: Duration = .seconds(30)
    ) async throws(CollaborationActionFailure) -> StartedCollaboration {
        let (action, started) = try await start(metadata, deadline)
        var newcomers: [PersonIdentity] = []
        do throws(CollaborationActionFailure) {
            let added: [PersonIdentity]
            do {
                added = try await recipients(started.collaborationIdentifier)
                let collaboration = started.collaborationIdentifier
                newcomers =
                    try await action.preparation(of: collaboration)?.newcomers(among: added, in: collaboration) ?? []
            } catch {
                throw .failed
            }
            var shared = metadata
            shared.collaborationIdentifier = started.collaborationIdentifier
            try await updateParticipants(of: shared, adding: added, deadline: deadline)
        } catch {
            throw await action.undoPreparations(removing: newcomers) ? error : .notUndone
        }
        try await action.claimOwnership(of: started.collaborationIdentifier, removing: newcomers)
        return started
    }

    /// Starts a collaboration, as the system does when a person shares content.
    ///
    /// Throws how the action failed. Then what the action has prepared is undone, as ``share(with:adding:deadline:)``
    /// does. Throws `notUndone` when the service could not be reached for that, and when it does not tell whether it
    /// has made a change.
    public func startCollaboration(
        with metadata: CollaborationMetadata, deadline: Duration = .seconds(30)
    ) async throws(CollaborationActionFailure) -> StartedCollaboration {
        let (action, started) = try await start(metadata, deadline)
        try await action.claimOwnership(of: started.collaborationIdentifier)
        return started
    }

    private func start(
        _ metadata: CollaborationMetadata, _ deadline: Duration
    ) async throws(CollaborationActionFailure) -> (action: StartCollaborationAction, started: StartedCollaboration) {
        guard let actionHandler else { throw .noHandler }
        let action = StartCollaborationAction(metadata)
        actionHandler.collaborationCoordinator(self, handle: action)
        let started: StartedCollaboration
        do throws(CollaborationActionFailure) {
            started = try await end(of: action.settlement, within: deadline).get()
        } catch {
            throw await action.undoPreparations() ? error : .notUndone
        }
        // A handler may have prepared more than it fulfilled the action with.
        _ = await action.undoPreparations(except: started.collaborationIdentifier)
        return (action, started)
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
