/// Options of which exactly one is selected. Apple: `SWCollaborationOptionsPickerGroup`.
public struct OptionsPickerGroup: CollaborationOptionsGroup {
    public var identifier: String
    public var title: String
    public var footer: String
    public var options: [CollaborationOption]

    /// When no option is selected, the first one is.
    public init(identifier: String, title: String = "", footer: String = "", options: [CollaborationOption]) {
        self.identifier = identifier
        self.title = title
        self.footer = footer
        self.options = options
        if !options.isEmpty, !options.contains(where: \.isSelected) { self.options[0].isSelected = true }
    }

    /// Selects one option and no other. Nothing happens when the group has no such option.
    public mutating func select(_ identifier: String) {
        guard options.contains(where: { $0.identifier == identifier }) else { return }
        for index in options.indices { options[index].isSelected = options[index].identifier == identifier }
    }

    public var kept: ShareOptions.Group { .picker(self) }
}
