/// One choice that people have when they share. Apple: `SWCollaborationOption`.
public struct CollaborationOption: Hashable, Sendable, Codable {
    public var title: String
    public var subtitle: String
    /// Names the option; no other option of the same share options has it.
    public var identifier: String
    public var isSelected: Bool
    /// Identifiers of options that have to be selected for this one to be.
    public var requiredOptionsIdentifiers: [String]
    /// The permission of participants when this option is selected; `nil` when the option does not set one.
    public var permission: Permission?

    public init(
        title: String, subtitle: String = "", identifier: String, isSelected: Bool = false,
        requiredOptionsIdentifiers: [String] = [], permission: Permission? = nil
    ) {
        self.title = title
        self.subtitle = subtitle
        self.identifier = identifier
        self.isSelected = isSelected
        self.requiredOptionsIdentifiers = requiredOptionsIdentifiers
        self.permission = permission
    }
}
