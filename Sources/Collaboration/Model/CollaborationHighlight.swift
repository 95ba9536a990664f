public import Core
public import Foundation

/// Content that is shared, as the system shows it. Apple: `SWCollaborationHighlight`.
public struct CollaborationHighlight: Hashable, Sendable, Codable {
    public let collaborationIdentifier: CollaborationIdentifier
    public let title: String?
    public let creationDate: Date
    /// The universal link; `nil` when the service has no base for links.
    public let url: URL?
    /// The permission summary.
    public let summary: String

    public init(
        collaborationIdentifier: CollaborationIdentifier, title: String?, creationDate: Date, url: URL?, summary: String
    ) {
        self.collaborationIdentifier = collaborationIdentifier
        self.title = title
        self.creationDate = creationDate
        self.url = url
        self.summary = summary
    }
}
