package import Wire

/// Which request needs which role. This is the only place that says so; PROTOCOL.md has the same table.
///
/// Whatever changes who may open a document needs `enrol`, also where the collaboration layer does it.
package enum RoleTable {
    /// What an operation needs.
    package enum Need: Hashable, Sendable {
        /// Anybody may ask.
        case nothing
        case role(PrincipalRole)
        /// The request's name says it: see `role(ofRequest:)`.
        case byName
    }

    package static func need(of operation: Operation) -> Need {
        switch operation {
        // Who asks for a snapshot shows that it has the cluster's secret.
        case .hello, .ping, .readSnapshot: .nothing
        case .issueChallenges, .verify, .verifyInclusion, .open, .checkGrants: .role(.verify)
        // An edit can't be sent.
        case .addRoots, .removeRoots, .createCollaboration, .dropCollaboration, .confirmEverywhere, .edit: .role(.enrol)
        case .testRoots, .listRoots, .countRoots, .listCollaborations, .statistics, .readChanges: .role(.observe)
        case .collaborate: .byName
        }
    }

    /// The role that a request of the collaboration layer needs; `nil`: there is no such request.
    package static func role(ofRequest name: String) -> PrincipalRole? { byName[name] }

    /// The requests of the collaboration layer, by role.
    package static let requests: [PrincipalRole: [String]] = [
        .enrol: [
            "prepare", "prepareAs", "abandon", "stopSharing", "claimOwnership", "transferOwnership", "addParticipants",
            "removeParticipants", "updateParticipants", "updateParticipant", "listParticipants", "findParticipants",
            "linkAccount", "createInvitation", "readInvitation", "acceptInvitation", "withdrawAcceptance",
            "listInvitations", "revokeInvitation",
        ],
        .collaborate: [
            "highlight", "updateShareOptions", "postNotices", "readNotices", "clearNotices", "recordShare",
            "readShelf", "readThumbnail", "pinHighlight", "removeHighlight", "signalHighlight", "setConsent",
            "readConsent", "readAttribution", "readDetails", "customizeDetails", "listShares",
        ],
        .administer: [
            "createPrincipal", "updatePrincipal", "removePrincipal", "addKey", "removeKey", "listPrincipals",
        ],
    ]

    private static let byName = Dictionary(
        uniqueKeysWithValues: requests.flatMap { role, names in names.map { ($0, role) } })
}
