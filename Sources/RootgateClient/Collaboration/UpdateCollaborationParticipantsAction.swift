import Synchronization

/// Asks the handler to add and remove participants. The handler calls `fulfill` or `fail`; only the first call counts.
/// Apple: `SWUpdateCollaborationParticipantsAction`.
public final class UpdateCollaborationParticipantsAction: Sendable {
    /// The shared content.
    public let collaborationMetadata: CollaborationMetadata
    /// The people to add as participants.
    public let addedIdentities: [PersonIdentity]
    /// The participants to remove.
    public let removedIdentities: [PersonIdentity]
    let settlement = Settlement<Bool>()

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
