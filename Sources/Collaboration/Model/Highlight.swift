public import Foundation

/// One item of a shelf. Apple: `SWHighlight`.
public struct Highlight: Hashable, Sendable, Codable, Identifiable {
    public let url: URL
    public let title: String?
    public let subtitle: String?
    public let thumbnail: ThumbnailReference?
    /// Where it is shown: the bundle identifier of the app that opens it.
    public let app: String
    /// When it was last shared.
    public let date: Date
    public let isPinned: Bool
    /// Whether it is the suggested item: the one that the person most likely looks for. It is the first of the shelf.
    public let isSuggested: Bool
    /// The latest share in each conversation whose shares count, newest first. With more than one, the app lets the
    /// person choose a conversation.
    public let attributions: [Attribution]

    public var id: URL { url }
}
