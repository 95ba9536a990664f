/// Elements that wait, in a line for each peer. Peers take turns.
package struct PeerLines<Element> {
    /// No line is empty.
    private var lines: [Holder: Queue<Element>] = [:]
    /// The peers with a line, each once.
    private var turns = Queue<Holder>()
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    package mutating func append(_ element: Element, of peer: Holder) {
        if lines[peer] == nil { turns.append(peer) }
        lines[peer, default: Queue()].append(element)
        count += 1
    }

    /// Removes the first element of the peer whose turn it is.
    package mutating func popFirst() -> Element? {
        guard let peer = turns.popFirst(), let element = removeFirst(of: peer) else { return nil }
        if lines[peer] != nil { turns.append(peer) }
        return element
    }

    /// Removes the oldest element of the peer with the most. Takes time that grows with the number of peers.
    package mutating func removeFromLongest() -> Element? {
        guard let peer = lines.max(by: { $0.value.count < $1.value.count })?.key else { return nil }
        defer {
            if lines[peer] == nil {
                var left = Queue<Holder>()
                while let other = turns.popFirst() { if other != peer { left.append(other) } }
                turns = left
            }
        }
        return removeFirst(of: peer)
    }

    private mutating func removeFirst(of peer: Holder) -> Element? {
        guard let element = lines[peer]?.popFirst() else { return nil }
        if lines[peer]?.isEmpty == true { lines[peer] = nil }
        count -= 1
        return element
    }
}
