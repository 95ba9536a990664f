import Core
import Foundation

/// `c`: a collaboration.
struct StoredCollaboration: Hashable, Codable {
    var owner: Account
    var localIdentifier: LocalCollaborationIdentifier
    /// The participant who is the owner; `nil` until the owner's account has claimed an identity.
    var ownerIdentity: PersonIdentity?
    /// The account that has started the collaboration, once it was handed over; `nil`: the owner.
    var initiator: Account?
    /// Accounts that have handed the collaboration over, and in whose shared scope it may be.
    var formerOwners: [Account] = []
    var title: String?
    var initiatorHandle: String?
    var initiatorNameComponents: NameComponents?
    /// The owner's name in notices, as it was given at the start.
    var ownerName: String?
    var shareOptions: ShareOptions
    /// What participants without a permission of their own may do when the selected options don't say; `nil`: read.
    var defaultPermission: Permission?
    /// How long nonces are remembered; `nil`: devices sign challenges.
    var nonceWindowSeconds: UInt32?
    var createdAt: Date
    var customItems: [CustomItem] = []
    var manageButtonTitle: String?
}

extension StoredCollaboration {
    /// What participants without a permission of their own may do.
    var permission: Permission { shareOptions.permission ?? defaultPermission ?? .readOnly }

    /// Throws `limitExceeded` when the summary, which may join titles of several options, is longer than a text.
    func checkSummary() throws(ServiceError) {
        try check(shareOptions.summary(for: permission), "the summary")
    }

    /// The name of the person who shares.
    var initiatorName: String? { StoredCollaboration.name(of: initiatorNameComponents, else: ownerName) }

    /// The name of the components that were given, else the owner's name. A blank name is none.
    static func name(of components: NameComponents?, else ownerName: String?) -> String? {
        [components?.formatted, ownerName].lazy.compactMap { $0 }.first { !$0.isBlank }
    }

    /// The highlight of the collaboration, which the system shows. `isOwners`: whether it is for the owner's account
    /// only.
    func highlight(
        _ identifier: CollaborationIdentifier, _ context: RuleContext, isOwners: Bool = false
    ) -> CollaborationHighlight {
        CollaborationHighlight(
            collaborationIdentifier: identifier, title: title, creationDate: createdAt,
            url: context.settings.link(of: identifier), summary: shareOptions.summary(for: permission),
            initiatorHandle: initiatorHandle, initiatorName: initiatorName,
            localIdentifier: isOwners ? localIdentifier : nil)
    }

    /// The records that follow from the share options: those whose value differs from that of `before`, or all when
    /// there was nothing before. Writing the default permission revokes grants, so it is written only when it changes.
    func optionRecords(_ identifier: CollaborationIdentifier, before: StoredCollaboration?) -> [RecordEdit] {
        var records: [RecordEdit] = []
        // Replacing a record by one that is not much longer needs no space, so that options can be restricted while
        // the storage is full.
        let expectation: RecordEdit.Expectation = before == nil ? .anything : .present
        if before?.permission != permission {
            records.append(
                RecordEdit(
                    RecordKeys.defaultPermission(identifier), value: DefaultPermission.value(permission),
                    expecting: expectation))
        }
        let selected = shareOptions.selectedIdentifiers
        if before?.shareOptions.selectedIdentifiers != selected {
            records.append(
                RecordEdit(
                    RecordKeys.selection(identifier), value: SelectedOptions.value(selected), expecting: expectation))
        }
        return records
    }
}
