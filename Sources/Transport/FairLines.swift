import Core

/// Elements that wait, in a line for each peer. The peer is served next that would have had the least time after its
/// next element, counted from when it began to wait. An element is expected to take as long as the peer's last one.
/// That is fair queueing (A. Demers, S. Keshav, S. Shenker, 1989) with times that are known afterwards.
///
/// A peer whose elements take long waits for those whose elements are short, but for none of them longer than for its
/// own share. Without times peers take turns.
struct FairLines<Element> {
    /// The next turn of a peer with a line.
    private struct Turn: Comparable {
        /// The virtual time at which it begins: what each peer has had that waited all the time.
        let start: UInt64
        /// When it should end.
        let end: UInt64
        let number: UInt64
        let peer: Holder

        static func < (one: Turn, other: Turn) -> Bool { (one.end, one.number) < (other.end, other.number) }
    }

    /// Lines may be empty only for the peer that is served.
    private var lines: [Holder: Queue<Element>] = [:]
    /// Of peers that were served: when their next turns begin, and how long the last ones took. Those whose turns could
    /// begin at once are forgotten now and then.
    private var known: [Holder: (start: UInt64, time: UInt64)] = [:]
    private var knownMax = 64
    private var turns = Heap<Turn>()
    /// The virtual time: when the last turn began of those that were taken.
    private var present: UInt64 = 0
    private var turnCount: UInt64 = 0
    private var served: Turn?
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ element: Element, of peer: Holder) {
        if lines[peer] == nil, served?.peer != peer {
            let (start, time) = known[peer] ?? (0, 0)
            addTurn(of: peer, at: max(present, start), lasting: time)
        }
        lines[peer, default: Queue()].append(element)
        count += 1
    }

    /// Removes the element that is served next. `endService` follows before the next one is removed.
    mutating func popFirst() -> Element? {
        precondition(served == nil, "an element is served, and has not ended")
        guard let turn = turns.popFirst(), let element = lines[turn.peer]?.popFirst() else { return nil }
        if lines[turn.peer]?.isEmpty == true { lines[turn.peer] = nil }
        (present, served) = (max(present, turn.start), turn)
        count -= 1
        return element
    }

    /// `time`: how long the element was served that was removed last, in a unit of the caller's.
    mutating func endService(after time: UInt64) {
        guard let turn = served else { preconditionFailure("no element is served") }
        served = nil
        guard !isEmpty else {
            known.removeAll(keepingCapacity: true)
            present = 0
            return
        }
        let time = max(1, time)
        known[turn.peer] = (turn.start + time, time)
        if lines[turn.peer] != nil { addTurn(of: turn.peer, at: turn.start + time, lasting: time) }
        forgetSome()
    }

    private mutating func addTurn(of peer: Holder, at start: UInt64, lasting time: UInt64) {
        turnCount += 1
        turns.insert(Turn(start: start, end: start + time, number: turnCount, peer: peer))
    }

    /// Forgets peers that could begin at once, when there are twice as many as were left the last time.
    private mutating func forgetSome() {
        guard known.count > knownMax else { return }
        known = known.filter { $0.value.start > present }
        knownMax = 2 * known.count + 64
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
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < elements.count {
                if elements[child] < elements[least] { least = child }
            }
            guard least != index else { return first }
            elements.swapAt(index, least)
            index = least
        }
    }
}
