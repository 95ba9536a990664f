/// What a mutation does to the root sets: a pure value, so that whoever applies
/// it in the same order gets the same state.
public enum Change: Hashable, Sendable {
    /// Makes a collaboration with an empty set. Making it again with the same policy changes nothing.
    case createCollaboration(CollaborationIdentifier, ProofPolicy)
    /// Removes a collaboration and its whole set.
    case dropCollaboration(CollaborationIdentifier)
    /// Puts root hashes into a collaboration's set; those already there stay.
    case addRoots(CollaborationIdentifier, [Digest])
    /// Takes root hashes out of a collaboration's set; those not there don't matter.
    case removeRoots(CollaborationIdentifier, [Digest])
    /// Several changes at once; not for clients to send, but in the change log.
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

    /// Whether it is an edit. Edits are decided anew each time that their request comes, so that a repeated one is
    /// known by its identifier alone.
    package var isEdit: Bool {
        if case .edit = self { true } else { false }
    }
}

/// One change and the identifier that makes retrying it harmless.
public struct Mutation: Hashable, Sendable {
    public let identifier: MutationIdentifier
    public let change: Change

    public init(identifier: MutationIdentifier = .random(), _ change: Change) {
        self.identifier = identifier
        self.change = change
    }
}

/// What the service says of a mutation once it is durable.
public struct MutationReceipt: Hashable, Sendable {
    /// The mutation's place in the change log, from 1, without gaps.
    public let sequence: UInt64
    /// How many collaborations or root hashes came or went.
    public let changed: UInt64
    /// Whether this identifier had been applied before: the receipt is that first one's.
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
    /// How many collaborations or root hashes came or went.
    public let changed: UInt64
    public let mutation: Mutation

    public init(sequence: UInt64, changed: UInt64, mutation: Mutation) {
        self.sequence = sequence
        self.changed = changed
        self.mutation = mutation
    }
}
