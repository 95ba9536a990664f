/// One page of a person's shelf.
public struct Shelf: Hashable, Sendable, Codable {
    public let highlights: [Highlight]
    /// All items of the shelf.
    public let count: Int
    /// The sequence of the last mutation that may have changed the shelf.
    public let version: UInt64
}
