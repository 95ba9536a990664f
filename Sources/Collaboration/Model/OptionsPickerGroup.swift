/// Options of which exactly one is selected. Apple: `SWCollaborationOptionsPickerGroup`.
public typealias OptionsPickerGroup = GroupOfOptions<OneOption>

/// The choice of a picker: one option is selected.
public enum OneOption: OptionsChoice {
    public static func kept(_ group: GroupOfOptions<Self>) -> ShareOptions.Group { .picker(group) }
}

extension OptionsPickerGroup {
    /// When no option is selected, the first one is.
    public init(identifier: String, title: String = "", footer: String = "", options: [CollaborationOption]) {
        (self.identifier, self.title, self.footer, self.options) = (identifier, title, footer, options)
        if !options.isEmpty, !options.contains(where: \.isSelected) { self.options[0].isSelected = true }
    }

    /// Selects one option and no other. Nothing happens when the group has no such option.
    public mutating func select(_ identifier: String) {
        guard options.contains(where: { $0.identifier == identifier }) else { return }
        for index in options.indices { options[index].isSelected = options[index].identifier == identifier }
    }
}
