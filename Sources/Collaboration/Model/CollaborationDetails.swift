/// What the collaboration button's popover shows. Apple: `SWCollaborationView`.
public struct CollaborationDetails: Hashable, Sendable, Codable {
    public let highlight: CollaborationHighlight
    public let shareOptions: ShareOptions
    /// The first of them, at most 100.
    public let participants: [Participant]
    /// Those who aren't removed.
    public let participantCount: Int
    /// The newest first, at most 20.
    public let recentActivity: [Notice]
    public let customItems: [CustomItem]
    /// The title of the button that opens the share options.
    public let manageButtonTitle: String
    /// What the viewer may do; everything when no viewer was named.
    public let manageOperations: [ManageOperation]

    /// The English title of the manage button unless the app sets another one.
    public static let standardManageButtonTitle = "Manage Shared File"
}
