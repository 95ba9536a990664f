package import Core

/// One page of a listing.
package struct Page<Item: Sendable>: Sendable {
    package var items: [Item]
    /// Whether the listing goes on behind the last item.
    package var hasMore: Bool
}

/// A collaboration as listings and statistics show it.
package struct CollaborationSummary: Hashable, Sendable {
    package let identifier: CollaborationIdentifier
    package let policy: ProofPolicy
    package let rootCount: UInt64
}
