/// How content is represented when it is shared. Apple: `TransferRepresentation`.
public protocol TransferRepresentation<Item>: Sendable {
    associatedtype Item: Sendable
    /// The metadata of one item.
    func metadata(of item: Item) -> CollaborationMetadata
}
