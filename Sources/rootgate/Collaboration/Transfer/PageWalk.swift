/// Walks through a list that is read in pages.
struct PageWalk<Item: Sendable> {
    private let page: (Item?) async throws -> (items: [Item], hasMore: Bool)
    private var items: ArraySlice<Item> = []
    private var last: Item?
    private var hasMore = true

    /// `page` reads the page behind an item; behind `nil` the first one.
    init(page: @escaping (Item?) async throws -> (items: [Item], hasMore: Bool)) {
        self.page = page
    }

    /// The next item, which stays the next one; `nil` at the end.
    mutating func first() async throws -> Item? {
        while items.isEmpty, hasMore {
            let next = try await page(last)
            items = next.items[...]
            hasMore = next.hasMore && !next.items.isEmpty
            last = next.items.last ?? last
        }
        return items.first
    }

    /// Goes on behind the item that `first` has returned.
    mutating func removeFirst() { items.removeFirst() }

    /// The next item, behind which the walk goes on.
    mutating func next() async throws -> Item? {
        guard let item = try await first() else { return nil }
        removeFirst()
        return item
    }
}
