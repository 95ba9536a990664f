import Core
import Foundation

/// `c`: a collaboration.
struct StoredCollaboration: Codable, Hashable {
    var owner: Account
    var localIdentifier: LocalCollaborationIdentifier
    var title: String?
    var initiatorHandle: String?
    var initiatorNameComponents: NameComponents?
    var shareOptions: ShareOptions
    var createdAt: Date
    var customItems: [CustomItem] = []
    var manageButtonTitle: String?
}

extension StoredCollaboration {
    /// The highlight of the collaboration, which the system shows.
    func highlight(_ identifier: CollaborationIdentifier, _ context: RuleContext) -> CollaborationHighlight {
        CollaborationHighlight(
            collaborationIdentifier: identifier, title: title, creationDate: createdAt,
            url: context.settings.link(of: identifier), summary: shareOptions.summary)
    }
}
