/// Represents an app's content by metadata. Apple: `ProxyRepresentation`.
public struct ProxyRepresentation<Item: Sendable>: TransferRepresentation {
    private let metadata: @Sendable (Item) -> CollaborationMetadata

    /// `exporting` makes the metadata of one item.
    public init(exporting: @escaping @Sendable (Item) -> CollaborationMetadata) {
        metadata = exporting
    }

    public func metadata(of item: Item) -> CollaborationMetadata {
        metadata(item)
    }
}
