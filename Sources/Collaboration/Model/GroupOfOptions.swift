/// A group of options. `Choice` says how many of them are selected.
public struct GroupOfOptions<Choice: OptionsChoice>: CollaborationOptionsGroup {
    public var identifier: String
    public var title: String
    public var footer: String
    public var options: [CollaborationOption]

    public var kept: ShareOptions.Group { Choice.kept(self) }

    private enum CodingKeys: String, CodingKey { case identifier, title, footer, options }
}

extension GroupOfOptions {
    /// Reads a group. Title and footer may be left out, as apps leave them out that set them later or never.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        identifier = try container.decode(String.self, forKey: .identifier)
        title = try container.decodeIfPresent(String.self, forKey: .title) ?? ""
        footer = try container.decodeIfPresent(String.self, forKey: .footer) ?? ""
        options = try container.decode([CollaborationOption].self, forKey: .options)
    }
}

/// How many options of a group are selected.
public protocol OptionsChoice {
    /// A group of this kind as share options keep it.
    static func kept(_ group: GroupOfOptions<Self>) -> ShareOptions.Group
}
