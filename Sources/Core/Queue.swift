/// First in, first out; both ends in constant time on average. Inlinable, so that other modules get it made for
/// their elements: as it stands it would look their types up at each call.
package struct Queue<Element> {
    @usableFromInline var items: [Element?] = []
    @usableFromInline var head = 0

    @inlinable
    package init() {}

    @inlinable
    package var count: Int { items.count - head }
    @inlinable
    package var isEmpty: Bool { head == items.count }
    @inlinable
    package var first: Element? { isEmpty ? nil : items[head] }

    @inlinable
    package mutating func append(_ element: Element) {
        items.append(element)
    }

    /// Drops the first element; the queue must not be empty.
    @inlinable
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

    @inlinable
    package mutating func popFirst() -> Element? {
        guard let element = first else { return nil }
        removeFirst()
        return element
    }
}
