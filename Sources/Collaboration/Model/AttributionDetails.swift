public import Foundation

/// Everything that an attribution view and its menu need for one item.
public struct AttributionDetails: Hashable, Sendable, Codable {
    /// One entry of the menu.
    public struct MenuAction: Hashable, Sendable, Codable {
        public enum Kind: String, Hashable, Sendable, Codable { case reply, remove }

        public let kind: Kind
        public let title: String
        /// With `reply`: stands for the conversation.
        public let handle: ConversationHandle?
        /// With `reply`, and only for the system's side: the conversation.
        public let conversation: String?
    }

    public let url: URL
    /// “From Ana and 2 others”. Only for the system's side, because it names people.
    public let summary: String?
    public let isPinned: Bool
    /// Newest first.
    public let attributions: [Attribution]
    /// The conversations to reply to, and removing.
    public let menu: [MenuAction]
}
