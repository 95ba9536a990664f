/// What both kinds of groups have.
public protocol CollaborationOptionsGroup: Hashable, Sendable, Codable {
    var identifier: String { get set }
    var title: String { get set }
    var footer: String { get set }
    var options: [CollaborationOption] { get set }
    /// The group as share options keep it.
    var kept: ShareOptions.Group { get }
}

/// Independent switches. Apple: `SWCollaborationOptionsGroup`.
public struct OptionsGroup: CollaborationOptionsGroup {
    public var identifier: String
    public var title: String
    public var footer: String
    public var options: [CollaborationOption]

    public init(identifier: String, title: String = "", footer: String = "", options: [CollaborationOption]) {
        self.identifier = identifier
        self.title = title
        self.footer = footer
        self.options = options
    }

    public var kept: ShareOptions.Group { .switches(self) }
}
