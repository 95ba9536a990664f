import Core
import Foundation

/// `c`: a collaboration.
struct StoredCollaboration: Codable {
    var owner: Account
    var localIdentifier: LocalCollaborationIdentifier
    var title: String?
    var initiatorHandle: String?
    var initiatorNameComponents: NameComponents?
    /// The owner's name in notices, as it was given at the start.
    var ownerName: String?
    var shareOptions: ShareOptions
    var createdAt: Date
    var customItems: [CustomItem] = []
    var manageButtonTitle: String?
}

extension StoredCollaboration {
    /// The name of the person who shares: of the components that were given, else the owner's name.
    var initiatorName: String? {
        [initiatorNameComponents?.formatted, ownerName].lazy.compactMap { $0 }.first { !$0.isEmpty }
    }

    /// The highlight of the collaboration, which the system shows. `isOwners`: whether it is for the owner's account
    /// only.
    func highlight(
        _ identifier: CollaborationIdentifier, _ context: RuleContext, isOwners: Bool = false
    ) -> CollaborationHighlight {
        CollaborationHighlight(
            collaborationIdentifier: identifier, title: title, creationDate: createdAt,
            url: context.settings.link(of: identifier), summary: shareOptions.summary,
            initiatorHandle: initiatorHandle, initiatorName: initiatorName,
            localIdentifier: isOwners ? localIdentifier : nil)
    }
}
