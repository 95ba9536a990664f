/// The kinds of work that do not wait for each other's turns. A notice may wake the queries of thousands of peers at
/// once, and each of them then asks again; a proof does not wait for a turn of each of them.
///
/// The types here are public for the reason that `Queue` is.
public enum WorkKind: Sendable, CaseIterable {
    case prompt
    /// Of queries that wait for a change.
    case following
}

/// A value for each kind of work.
public struct ForEachKind<Value> {
    @usableFromInline var prompt: Value
    @usableFromInline var following: Value

    @inlinable
    public init(_ value: Value) {
        prompt = value
        following = value
    }

    @inlinable
    public subscript(kind: WorkKind) -> Value {
        _read { if kind == .prompt { yield prompt } else { yield following } }
        _modify { if kind == .prompt { yield &prompt } else { yield &following } }
    }
}

/// Which kind of work has the next turn. Of the turns, work that follows gets the part that its peers are of all peers
/// whose work waits, but half of them at most. So neither kind waits for more than one turn of each peer, and prompt
/// work waits for one turn of the other kind.
public struct KindTurns: Sendable {
    /// Turns of prompt work since the last turn of the other kind.
    @usableFromInline var promptTurns = 0

    @inlinable
    public init() {}

    /// `promptPeers`, `followingPeers`: peers that wait with work of either kind.
    @inlinable
    public func next(promptPeers: Int, followingPeers: Int) -> WorkKind {
        if promptPeers == 0 || followingPeers == 0 { return followingPeers == 0 ? .prompt : .following }
        return promptTurns > 0 && promptTurns * followingPeers >= promptPeers ? .following : .prompt
    }

    /// Counts a turn.
    @inlinable
    public mutating func note(_ kind: WorkKind) {
        promptTurns = kind == .prompt ? promptTurns + 1 : 0
    }
}
