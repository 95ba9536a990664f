public import Foundation

/// One share of an item, as attribution shows it. Apple: what `SWAttributionView` displays.
public struct Attribution: Hashable, Sendable, Codable {
    public let sharer: Sharer
    public let conversation: Conversation
    public let date: Date
    public let isPinned: Bool
}
