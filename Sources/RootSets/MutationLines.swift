import Core

/// A mutation that waits for the writer.
struct WaitingMutation: Sendable {
    let mutation: Mutation
    let bytes: Int
    let peer: Holder
    /// Whether the request that makes it is urgent: it takes something away from somebody.
    let isUrgent: Bool
    let completion: CommitQueue.Completion
}

/// The mutations that wait for the writer, in a line for each peer.
///
/// Mutations of one peer keep their order. Peers take turns, so one with many mutations does not delay one with few.
/// Peers whose next mutation is urgent go first, but after `Limits.urgentMutationsInRow` of those it is another's turn.
struct MutationLines {
    /// No line is empty.
    private var lines: [Holder: Queue<WaitingMutation>] = [:]
    /// The peers whose next mutation is urgent, and the others. Each peer with a line is in one of them, once.
    private var urgentTurns = Queue<Holder>()
    private var turns = Queue<Holder>()
    private var urgentInRow = 0
    /// Waiting mutations.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// Whether the next mutation of some peer is urgent.
    var hasUrgent: Bool { !urgentTurns.isEmpty }

    mutating func append(_ mutation: WaitingMutation) {
        if let line = lines.index(forKey: mutation.peer) {
            lines.values[line].append(mutation)
        } else {
            addTurn(of: mutation.peer, isUrgent: mutation.isUrgent)
            lines[mutation.peer, default: Queue()].append(mutation)
        }
        count += 1
    }

    /// Puts mutations back that were taken, before all others of their peers. It is these peers' turn next.
    mutating func putBack(_ taken: some Sequence<WaitingMutation>) {
        var lines = MutationLines()
        lines.urgentInRow = urgentInRow
        for mutation in taken { lines.append(mutation) }
        while let next = first {
            removeFirst()
            lines.append(next)
        }
        self = lines
    }

    /// The mutation whose turn it is; `nil` when none waits.
    var first: WaitingMutation? {
        guard let peer = takesUrgent ? urgentTurns.first : turns.first else { return nil }
        return lines[peer]?.first
    }

    /// Removes the mutation whose turn it is.
    mutating func removeFirst() {
        let takesUrgent = takesUrgent
        guard let peer = takesUrgent ? urgentTurns.popFirst() : turns.popFirst(), let line = lines.index(forKey: peer)
        else { preconditionFailure("no mutation waits") }
        urgentInRow = takesUrgent ? urgentInRow + 1 : 0
        count -= 1
        lines.values[line].removeFirst()
        if let next = lines.values[line].first {
            addTurn(of: peer, isUrgent: next.isUrgent)
        } else {
            lines.remove(at: line)
        }
        precondition(!lines.isEmpty || count == 0, "waiting mutations are counted wrongly")
    }

    private var takesUrgent: Bool {
        !urgentTurns.isEmpty && (turns.isEmpty || urgentInRow < Limits.urgentMutationsInRow)
    }

    private mutating func addTurn(of peer: Holder, isUrgent: Bool) {
        if isUrgent { urgentTurns.append(peer) } else { turns.append(peer) }
    }
}
