/// What a mutation does to the root sets. It is a pure value: the same changes in the same order give the same state.
public enum Change: Hashable, Sendable {
    /// Creates a collaboration with an empty set. Repeating it with the same policy changes nothing.
    case createCollaboration(CollaborationIdentifier, ProofPolicy)
    /// Removes a collaboration and its whole set.
    case dropCollaboration(CollaborationIdentifier)
    /// Adds root hashes to a collaboration's set. Hashes that the set already has stay.
    case addRoots(CollaborationIdentifier, [Digest])
    /// Removes root hashes from a collaboration's set. Hashes that the set does not have are ignored.
    case removeRoots(CollaborationIdentifier, [Digest])
    /// Several changes at once. Clients can't send it; they see it in the change log.
    case edit(Edit)

    /// The collaboration that is changed; `nil` for an edit of records alone.
    public var collaboration: CollaborationIdentifier? {
        switch self {
        case .createCollaboration(let collaboration, _), .dropCollaboration(let collaboration),
            .addRoots(let collaboration, _), .removeRoots(let collaboration, _):
            collaboration
        case .edit(let edit): edit.collaboration
        }
    }

    /// Whether the change makes the storage larger. Every other one is a removal, which a full disk does not stop.
    package var needsSpace: Bool {
        switch self {
        case .createCollaboration, .addRoots: true
        case .dropCollaboration, .removeRoots: false
        case .edit(let edit): edit.needsSpace
        }
    }

    /// Whether `other` has the content of this change, so that under one identifier it is a repetition. Edits that
    /// requests made have the same content when the requests are the same: a repeated request is decided anew, maybe
    /// with another edit. All other changes are compared themselves.
    package func hasContent(of other: Change) -> Bool {
        if case .edit(let ours) = self, case .edit(let others) = other, let request = ours.request {
            return request == others.request
        }
        return self == other
    }
}

/// One change and the identifier that makes retrying it harmless.
public struct Mutation: Hashable, Sendable {
    /// What the client chose. In the change log: 16 bytes that the service derives from it and from the caller.
    public let identifier: MutationIdentifier
    public let change: Change

    public init(identifier: MutationIdentifier = .random(), _ change: Change) {
        self.identifier = identifier
        self.change = change
    }
}

/// The service's answer to a mutation, given once the mutation is durable.
public struct MutationReceipt: Hashable, Sendable {
    /// The mutation's place in the change log, from 1, without gaps.
    public let sequence: UInt64
    /// How many collaborations or root hashes were added or removed.
    public let changed: UInt64
    /// Whether this identifier was applied before. The receipt is then the first one.
    public let isRepeat: Bool

    public init(sequence: UInt64, changed: UInt64, isRepeat: Bool) {
        self.sequence = sequence
        self.changed = changed
        self.isRepeat = isRepeat
    }
}

/// One record of the change log.
public struct LoggedMutation: Hashable, Sendable {
    public let sequence: UInt64
    /// How many collaborations or root hashes were added or removed.
    public let changed: UInt64
    public let mutation: Mutation

    public init(sequence: UInt64, changed: UInt64, mutation: Mutation) {
        self.sequence = sequence
        self.changed = changed
        self.mutation = mutation
    }
}
