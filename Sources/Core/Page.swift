/// One page of a listing.
package struct Page<Item: Sendable>: Sendable {
    package var items: [Item]
    /// Whether the listing goes on behind the last item.
    package var hasMore: Bool

    package init(items: [Item], hasMore: Bool) {
        self.items = items
        self.hasMore = hasMore
    }
}
