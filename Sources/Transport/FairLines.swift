import Core

/// Elements that wait, in a line for each peer. The time for which each peer was served is counted. The peer goes first
/// whose time would be the least after its next element. A peer that was away begins where the others are.
///
/// That is fair queueing (A. Demers, S. Keshav, S. Shenker, 1989) with times that are known afterwards: an element is
/// expected to take as long as the shorter one of the peer's last two. Without times peers take turns.
struct FairLines<Element> {
    /// The next turn of a peer with a line. Times are virtual: what each peer has had that waited all the time.
    private struct Turn: Comparable {
        let start: UInt64
        /// When it should end.
        let end: UInt64
        let number: UInt64
        let peer: Holder

        static func < (one: Turn, other: Turn) -> Bool { (one.end, one.number) < (other.end, other.number) }
    }

    /// What is known of a peer that was served.
    private struct Past {
        /// When its next turn begins, unless that is over.
        var start: UInt64
        /// How long its last two turns took.
        var last: UInt64
        var before: UInt64

        var expected: UInt64 { min(last, before) }
    }

    /// Peers that are known at least before those are forgotten whose turns could begin at once.
    private static var knownMin: Int { 1024 }

    /// No line is empty. The peer that is served has no turn, even when it has a line.
    private var lines: [Holder: Queue<Element>] = [:]
    private var known: [Holder: Past] = [:]
    private var knownMax = FairLines.knownMin
    private var turns = Heap<Turn>()
    /// The virtual time. It goes on with what is served, divided by the peers that wait.
    private var present: UInt64 = 0
    /// What was served and is less than a unit for each peer.
    private var undivided: UInt64 = 0
    /// The latest beginning of a next turn.
    private var latest: UInt64 = 0
    private var turnCount: UInt64 = 0
    private var served: Turn?
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// Peers with a line.
    var peerCount: Int { lines.count }
    /// Peers that are remembered. They are at most a few times as many as wait, and `knownMin`.
    var knownCount: Int { known.count }

    mutating func append(_ element: Element, of peer: Holder) {
        if lines[peer] == nil, served?.peer != peer {
            let past = known[peer]
            addTurn(of: peer, at: max(present, past?.start ?? 0), lasting: past?.expected ?? 0)
        }
        lines[peer, default: Queue()].append(element)
        count += 1
    }

    /// Removes the element that is served next. `endService` follows before the next one is removed.
    mutating func popFirst() -> Element? {
        precondition(served == nil, "an element is served, and has not ended")
        guard let turn = turns.popFirst(), let element = lines[turn.peer]?.popFirst() else { return nil }
        if lines[turn.peer]?.isEmpty == true { lines[turn.peer] = nil }
        served = turn
        count -= 1
        return element
    }

    /// `time`: how long the element was served that was removed last, in a unit of the caller's.
    mutating func endService(after time: UInt64) {
        guard let turn = served else { preconditionFailure("no element is served") }
        served = nil
        let time = max(1, time)
        let past = Past(start: turn.start + time, last: time, before: known[turn.peer]?.last ?? time)
        known[turn.peer] = past
        latest = max(latest, past.start)
        if lines[turn.peer] != nil { addTurn(of: turn.peer, at: past.start, lasting: past.expected) }
        // When nobody waits, nobody has had more than another.
        present = isEmpty ? max(present, latest) : max(present, turn.start)
        undivided += time
        present += undivided / UInt64(lines.count + 1)
        undivided %= UInt64(lines.count + 1)
        forgetSome()
    }

    private mutating func addTurn(of peer: Holder, at start: UInt64, lasting time: UInt64) {
        turnCount += 1
        turns.insert(Turn(start: start, end: start + time, number: turnCount, peer: peer))
    }

    /// Forgets peers whose turns could begin at once, when there are twice as many as were left the last time.
    private mutating func forgetSome() {
        guard known.count > knownMax else { return }
        known = known.filter { $0.value.start > present }
        knownMax = max(FairLines.knownMin, 2 * known.count)
    }
}

/// A binary heap: the smallest element is removed first.
private struct Heap<Element: Comparable> {
    private var elements: [Element] = []

    mutating func insert(_ element: Element) {
        elements.append(element)
        var index = elements.count - 1
        while index > 0, elements[index] < elements[(index - 1) / 2] {
            elements.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func popFirst() -> Element? {
        guard let first = elements.first, let last = elements.popLast() else { return nil }
        guard !elements.isEmpty else { return first }
        elements[0] = last
        var index = 0
        while true {
            let (left, right) = (2 * index + 1, 2 * index + 2)
            var least = index
            if left < elements.count, elements[left] < elements[least] { least = left }
            if right < elements.count, elements[right] < elements[least] { least = right }
            guard least != index else { return first }
            elements.swapAt(index, least)
            index = least
        }
    }
}
