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

/// Which kind of work has the next turn. Of what turns cost, work that follows gets the part that its peers are of all
/// peers whose work waits, but half at most. And no turn of it follows another one while prompt work waits.
public struct KindTurns: Sendable {
    /// What work that follows may still cost; below 0: what it has had too much.
    @usableFromInline var due = 0.0
    /// What it gets for each unit of prompt work: 0 unless both wait.
    @usableFromInline var part = 0.0

    @inlinable
    public init() {}

    /// The kind of the next turn. `note` follows. `promptPeers`, `followingPeers`: peers that wait with work of a kind.
    @inlinable
    public mutating func next(promptPeers: Int, followingPeers: Int) -> WorkKind {
        guard promptPeers > 0, followingPeers > 0 else {
            (due, part) = (0, 0)
            return followingPeers == 0 ? .prompt : .following
        }
        part = min(1, Double(followingPeers) / Double(promptPeers))
        return due > 0 ? .following : .prompt
    }

    /// Counts the turn. `cost`: above 0, in a unit of the caller's.
    @inlinable
    public mutating func note(_ kind: WorkKind, cost: Int) {
        if kind == .prompt {
            due += Double(cost) * part
        } else if part > 0 {
            due = min(0, due - Double(cost))
        }
    }
}
