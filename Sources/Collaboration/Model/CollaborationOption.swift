/// One choice that people have when they share. Apple: `SWCollaborationOption`.
public struct CollaborationOption: Hashable, Sendable, Codable {
    public var title: String
    public var subtitle: String
    /// Names the option; no other option of the same share options has it.
    public var identifier: String
    public var isSelected: Bool
    /// Identifiers of options that have to be selected for this one to be.
    public var requiredOptionsIdentifiers: [String]
    /// What the service does when the option is selected.
    public var effects: [OptionEffect]

    public init(
        title: String, subtitle: String = "", identifier: String, isSelected: Bool = false,
        requiredOptionsIdentifiers: [String] = [], effects: [OptionEffect] = []
    ) {
        self.title = title
        self.subtitle = subtitle
        self.identifier = identifier
        self.isSelected = isSelected
        self.requiredOptionsIdentifiers = requiredOptionsIdentifiers
        self.effects = effects
    }

    private enum CodingKeys: String, CodingKey {
        case title, subtitle, identifier, isSelected, requiredOptionsIdentifiers, effects
    }

    /// Reads an option. Everything but title and identifier may be left out; an option is not selected unless it says
    /// so.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            title: try container.decode(String.self, forKey: .title),
            subtitle: try container.decodeIfPresent(String.self, forKey: .subtitle) ?? "",
            identifier: try container.decode(String.self, forKey: .identifier),
            isSelected: try container.decodeIfPresent(Bool.self, forKey: .isSelected) ?? false,
            requiredOptionsIdentifiers: try container.decodeIfPresent(
                [String].self, forKey: .requiredOptionsIdentifiers) ?? [],
            effects: try container.decodeIfPresent([OptionEffect].self, forKey: .effects) ?? [])
    }
}
