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
    /// Who shares the content, as it was said when sharing was started: the account handle, an address or a telephone
    /// number, and the name.
    public let initiatorHandle: String?
    public let initiatorName: String?
    /// The local identifier, in the list of the owner's own shares; `nil` everywhere else.
    public let localIdentifier: LocalCollaborationIdentifier?

    public init(
        collaborationIdentifier: CollaborationIdentifier, title: String?, creationDate: Date, url: URL?,
        summary: String, initiatorHandle: String? = nil, initiatorName: String? = nil,
        localIdentifier: LocalCollaborationIdentifier? = nil
    ) {
        self.collaborationIdentifier = collaborationIdentifier
        self.title = title
        self.creationDate = creationDate
        self.url = url
        self.summary = summary
        self.initiatorHandle = initiatorHandle
        self.initiatorName = initiatorName
        self.localIdentifier = localIdentifier
    }
}
