public import Core

/// A description of content that is shared or about to be shared. Apple: `SWCollaborationMetadata`.
public struct CollaborationMetadata: Hashable, Sendable, Codable {
    public var localIdentifier: LocalCollaborationIdentifier
    /// Known to all devices, once the collaboration was started.
    public var collaborationIdentifier: CollaborationIdentifier?
    public var title: String?
    /// The account handle of the person who shares, an address or a telephone number.
    public var initiatorHandle: String?
    public var initiatorNameComponents: NameComponents?
    /// The options that are selected when the share sheet opens.
    public var defaultShareOptions: ShareOptions?
    /// The options that the person has chosen; `nil` before that.
    public var userSelectedShareOptions: ShareOptions?
    /// What participants without a permission of their own may do when the selected options don't say; `nil`: read.
    public var defaultPermission: Permission?

    public init(localIdentifier: LocalCollaborationIdentifier) {
        self.localIdentifier = localIdentifier
    }

    /// The metadata of content, as it is when the share sheet opens.
    public init(
        localIdentifier: LocalCollaborationIdentifier, title: String?, defaultShareOptions: ShareOptions?,
        initiatorHandle: String?, initiatorNameComponents: NameComponents?
    ) {
        self.localIdentifier = localIdentifier
        self.title = title
        self.defaultShareOptions = defaultShareOptions
        self.initiatorHandle = initiatorHandle
        self.initiatorNameComponents = initiatorNameComponents
    }

    /// The chosen options, or the default ones when none were chosen.
    public var shareOptions: ShareOptions? { userSelectedShareOptions ?? defaultShareOptions }

    /// What participants without a permission of their own may do with those options.
    public var permission: Permission { shareOptions?.permission ?? defaultPermission ?? .readOnly }
}
