/// First in, first out; both ends in constant time on average.
///
/// Public, because only public functions are inlined in other modules, and made for their elements there: else each
/// call would look the elements' type up.
public struct Queue<Element> {
    @usableFromInline var items: [Element?] = []
    @usableFromInline var head = 0

    @inlinable
    public init() {}

    @inlinable
    public var count: Int { items.count - head }
    @inlinable
    public var isEmpty: Bool { head == items.count }
    @inlinable
    public var first: Element? { isEmpty ? nil : items[head] }

    @inlinable
    public mutating func append(_ element: Element) {
        items.append(element)
    }

    /// Drops the first element; the queue must not be empty.
    @inlinable
    public mutating func removeFirst() {
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
    public mutating func popFirst() -> Element? {
        guard let element = first else { return nil }
        removeFirst()
        return element
    }
}
