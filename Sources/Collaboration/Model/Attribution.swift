public import Foundation

/// One share of an item, as attribution shows it. Apple: what `SWAttributionView` displays. Its names and avatars are
/// drawn outside of the app, which gets a handle instead of the conversation and its people.
public struct Attribution: Hashable, Sendable, Codable {
    /// Stands for the conversation.
    public let handle: ConversationHandle
    public let date: Date
    public let isPinned: Bool
    /// Only for the system's side.
    public let sharer: Sharer?
    /// Only for the system's side.
    public let conversation: Conversation?
}
