/// A group of options. `Choice` says how many of them are selected.
public struct GroupOfOptions<Choice: OptionsChoice>: CollaborationOptionsGroup {
    public var identifier: String
    public var title: String
    public var footer: String
    public var options: [CollaborationOption]

    public var kept: ShareOptions.Group { Choice.kept(self) }
}

/// How many options of a group are selected.
public protocol OptionsChoice {
    /// A group of this kind as share options keep it.
    static func kept(_ group: GroupOfOptions<Self>) -> ShareOptions.Group
}
