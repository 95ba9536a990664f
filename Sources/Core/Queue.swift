/// A first-in, first-out queue. Adding and removing an element take constant time on average.
///
/// The type is public because the compiler inlines and specializes only public functions in other modules. Otherwise
/// each call would look up the type of the elements.
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

    /// Removes the first element. The queue must not be empty.
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
