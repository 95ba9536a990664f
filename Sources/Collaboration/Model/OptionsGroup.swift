/// Independent switches. Apple: `SWCollaborationOptionsGroup`.
public typealias OptionsGroup = GroupOfOptions<AnyNumberOfOptions>

/// The choice of switches: any number of them is selected.
public enum AnyNumberOfOptions: OptionsChoice {
    public static func kept(_ group: GroupOfOptions<Self>) -> ShareOptions.Group { .switches(group) }
}

extension OptionsGroup {
    public init(identifier: String, title: String = "", footer: String = "", options: [CollaborationOption]) {
        (self.identifier, self.title, self.footer, self.options) = (identifier, title, footer, options)
    }
}
