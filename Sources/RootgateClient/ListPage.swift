/// One page of a listing.
public struct ListPage<Item: Sendable>: Sendable {
    /// The items of the page, in the listing's order.
    public let items: [Item]
    /// Whether the listing goes on behind the last item.
    public let hasMore: Bool
}
