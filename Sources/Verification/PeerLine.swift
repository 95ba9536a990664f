import Core

/// The sources of one peer that have waiting work, and the places of the queue that it takes.
///
/// Sendable without the compiler's proof: it is used only under the pool's lock.
final class PeerLine: @unchecked Sendable {
    let peer: Holder
    /// The sources with waiting work of a kind, in the order of their turns.
    var turns = ForEachKind(Queue<WorkSource>())
    /// Proofs and tasks that wait.
    var waitingItems = 0
    /// Whether the pool finds this line by its peer.
    var isListed = true

    init(_ peer: Holder) {
        self.peer = peer
    }
}
