public import Core
public import Foundation
import Synchronization

/// Carries out actions for the system. Apple: `SWCollaborationActionHandler`.
public protocol CollaborationActionHandler: AnyObject, Sendable {
    /// Content is about to be shared. Prepare the collaboration on the service, then fulfill the action, or fail it.
    func collaborationCoordinator(_ coordinator: CollaborationCoordinator, handle action: StartCollaborationAction)
    /// People joined or left the conversation. Add and remove participants, then fulfill the action, or fail it.
    func collaborationCoordinator(
        _ coordinator: CollaborationCoordinator, handle action: UpdateCollaborationParticipantsAction)
}

/// How an action can fail.
public enum CollaborationActionFailure: Error, Hashable, Sendable {
    /// The handler failed the action.
    case failed
    /// The handler did not end the action before its deadline.
    case deadlineExceeded
    /// There is no handler.
    case noHandler
}

/// The state of an action. Only the first end of an action counts; later ones are ignored.
private final class Settlement<Value: Sendable>: Sendable {
    private enum State {
        case unsettled([CheckedContinuation<Result<Value, CollaborationActionFailure>, Never>])
        case ended(Result<Value, CollaborationActionFailure>)
    }

    private let state = Mutex(State.unsettled([]))

    var isEnded: Bool {
        state.withLock { if case .ended = $0 { true } else { false } }
    }

    /// Ends the action; false when it had already ended.
    @discardableResult
    func end(_ result: Result<Value, CollaborationActionFailure>) -> Bool {
        let waiters = state.withLock {
            state -> [CheckedContinuation<Result<Value, CollaborationActionFailure>, Never>]? in
            guard case .unsettled(let waiters) = state else { return nil }
            state = .ended(result)
            return waiters
        }
        for waiter in waiters ?? [] { waiter.resume(returning: result) }
        return waiters != nil
    }

    func result() async -> Result<Value, CollaborationActionFailure> {
        await withCheckedContinuation { waiter in
            let ended = state.withLock { state -> Result<Value, CollaborationActionFailure>? in
                switch state {
                case .ended(let result): return result
                case .unsettled(let waiters):
                    state = .unsettled(waiters + [waiter])
                    return nil
                }
            }
            if let ended { waiter.resume(returning: ended) }
        }
    }
}

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
    fileprivate let settlement = Settlement<StartedCollaboration>()
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

    fileprivate func undoPreparation() async {
        let steps = undoing.withLock { steps in
            defer { steps = [] }
            return steps
        }
        for step in steps { await step() }
    }
}

/// Asks the handler to add and remove participants. The handler calls `fulfill` or `fail`; only the first call counts.
/// Apple: `SWUpdateCollaborationParticipantsAction`.
public final class UpdateCollaborationParticipantsAction: Sendable {
    /// The shared content.
    public let collaborationMetadata: CollaborationMetadata
    /// The people to add as participants.
    public let addedIdentities: [PersonIdentity]
    /// The participants to remove.
    public let removedIdentities: [PersonIdentity]
    fileprivate let settlement = Settlement<Bool>()

    init(_ metadata: CollaborationMetadata, added: [PersonIdentity], removed: [PersonIdentity]) {
        collaborationMetadata = metadata
        addedIdentities = added
        removedIdentities = removed
    }

    /// Whether the action was fulfilled, has failed, or its time is over.
    public var isComplete: Bool { settlement.isEnded }

    /// Ends the action with success; false when it had already ended.
    @discardableResult
    public func fulfill() -> Bool {
        settlement.end(.success(true))
    }

    /// Ends the action with a failure; false when it had already ended.
    @discardableResult
    public func fail() -> Bool {
        settlement.end(.failure(.failed))
    }
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
