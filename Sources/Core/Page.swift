/// One page of a listing.
package struct Page<Item: Sendable>: Sendable {
    package var items: [Item]
    /// Whether more items follow behind the last one.
    package var hasMore: Bool

    package init(items: [Item], hasMore: Bool) {
        self.items = items
        self.hasMore = hasMore
    }
}
