/// First in, first out; both ends in constant time on average.
package struct Queue<Element> {
    private var items: [Element?] = []
    private var head = 0

    package init() {}

    package var count: Int { items.count - head }
    package var isEmpty: Bool { head == items.count }
    package var first: Element? { isEmpty ? nil : items[head] }

    package mutating func append(_ element: Element) {
        items.append(element)
    }

    /// Drops the first element; the queue must not be empty.
    package mutating func removeFirst() {
        items[head] = nil
        head += 1
        if head == items.count {
            items.removeAll(keepingCapacity: items.capacity <= 1024)
            head = 0
        } else if head >= 64, head * 2 >= items.count {
            items.removeFirst(head)
            head = 0
        }
    }

    package mutating func popFirst() -> Element? {
        guard let element = first else { return nil }
        removeFirst()
        return element
    }
}
