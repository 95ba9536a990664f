public import Core

/// The choices that people have when they share, and how they have chosen. Apple: `SWCollaborationShareOptions`.
public struct ShareOptions: Hashable, Sendable, Codable {
    /// A group with its kind.
    public enum Group: Hashable, Sendable, Codable {
        case switches(OptionsGroup)
        case picker(OptionsPickerGroup)

        /// The group without its kind.
        public var content: any CollaborationOptionsGroup {
            switch self {
            case .switches(let group): group
            case .picker(let group): group
            }
        }

        /// The group's options.
        public var options: [CollaborationOption] {
            get { content.options }
            set {
                switch self {
                case .switches(var group):
                    group.options = newValue
                    self = .switches(group)
                case .picker(var group):
                    group.options = newValue
                    self = .picker(group)
                }
            }
        }

        /// Reads `{"kind": "switches" | "picker", ...}`.
        public init(from decoder: any Decoder) throws {
            let kind = try decoder.container(keyedBy: Key.self).decode(Kind.self, forKey: .kind)
            switch kind {
            case .switches: self = .switches(try OptionsGroup(from: decoder))
            case .picker: self = .picker(try OptionsPickerGroup(from: decoder))
            }
        }

        /// Writes the group's fields and its kind.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            switch self {
            case .switches(let group):
                try container.encode(Kind.switches, forKey: .kind)
                try group.encode(to: encoder)
            case .picker(let group):
                try container.encode(Kind.picker, forKey: .kind)
                try group.encode(to: encoder)
            }
        }

        private enum Key: String, CodingKey { case kind }
        private enum Kind: String, Codable { case switches, picker }
    }

    public var groups: [Group]
    /// A phrase that sums up the selected options; `nil`: it is derived from them.
    public var givenSummary: String?

    public init(optionsGroups: [any CollaborationOptionsGroup], summary: String? = nil) {
        groups = optionsGroups.map(\.kept)
        givenSummary = summary
    }

    /// The groups without their kinds.
    public var optionsGroups: [any CollaborationOptionsGroup] { groups.map(\.content) }

    /// Identifiers of the selected options, in the order of the groups.
    public var selectedIdentifiers: [String] {
        groups.flatMap(\.options).filter(\.isSelected).map(\.identifier)
    }

    /// The summary that the share sheet and the link show: the given summary, else the titles of the pickers' selected
    /// options, else a phrase for `permission`. The titles are left out when the effect of one of them is overruled, or
    /// when all of them are blank. Given summary and titles are the app's words: where the options have no effect, they
    /// may say something else than `permission`.
    public func summary(for permission: Permission) -> String {
        if let givenSummary, !givenSummary.isBlank { return givenSummary }
        let picks = groups.compactMap { group -> CollaborationOption? in
            guard case .picker(let picker) = group else { return nil }
            return picker.options.first(where: \.isSelected)
        }
        // A title that says more than holds is no summary.
        let isTrue = picks.flatMap(\.effects).compactMap(\.permission).allSatisfy { $0 == permission }
        let titles = picks.map(\.title).filter { !$0.isBlank }
        guard titles.isEmpty || !isTrue else { return titles.joined(separator: ", ") }
        switch permission {
        case .readOnly: return "Only invited people can view"
        case .readWrite: return "Only invited people can make changes"
        }
    }

    /// The permission that the selected options set for participants without a permission of their own: `readOnly` when
    /// one of them says so, else `readWrite` when one says so, `nil` when none sets a permission.
    public var permission: Permission? {
        let permissions = selectedEffects.compactMap(\.permission)
        return permissions.contains(.readOnly) ? .readOnly : permissions.first
    }

    /// Whether the selected options allow an action; `nil` when no option of the tree is about it.
    public func allows(_ effect: OptionEffect) -> Bool? {
        guard groups.flatMap(\.options).contains(where: { $0.effects.contains(effect) }) else { return nil }
        return selectedEffects.contains(effect)
    }

    private var selectedEffects: [OptionEffect] {
        groups.flatMap(\.options).filter(\.isSelected).flatMap(\.effects)
    }

    /// These options with other choices: exactly the options of those identifiers are selected. A given summary belongs
    /// to the choices that it was given with: other choices drop it.
    ///
    /// Throws `unknownOption`, `optionConflict` or `optionRequired`; the reason names the option.
    public func selecting(_ identifiers: [String]) throws(ServiceError) -> ShareOptions {
        let known = Set(groups.flatMap(\.options).map(\.identifier))
        if let stranger = identifiers.first(where: { !known.contains($0) }) {
            throw ServiceError(.unknownOption, "there is no option “\(stranger)”")
        }
        let wanted = Set(identifiers)
        var chosen = self
        for index in chosen.groups.indices {
            var options = chosen.groups[index].options
            for position in options.indices {
                options[position].isSelected = wanted.contains(options[position].identifier)
            }
            chosen.groups[index].options = options
        }
        if chosen.groups != groups { chosen.givenSummary = nil }
        try chosen.check()
        return chosen
    }

    /// A blank summary is none.
    package mutating func dropEmptySummary() {
        if let givenSummary, givenSummary.isBlank { self.givenSummary = nil }
    }

    /// Checks the choices: each picker has exactly one selected option, and every option that a selected option
    /// requires is selected.
    ///
    /// Throws `unknownOption` (an option requires one that doesn't exist), `optionConflict` (a picker has two selected
    /// options or none, or two options or two groups have one identifier) or `optionRequired`. The reason names the
    /// option or the group.
    public func check() throws(ServiceError) {
        let options = groups.flatMap(\.options)
        let selected = Set(options.filter(\.isSelected).map(\.identifier))
        var known: Set<String> = []
        for option in options where !known.insert(option.identifier).inserted {
            throw ServiceError(.optionConflict, "two options have the identifier “\(option.identifier)”")
        }
        var groupIdentifiers: Set<String> = []
        for group in groups where !groupIdentifiers.insert(group.content.identifier).inserted {
            throw ServiceError(.optionConflict, "two groups have the identifier “\(group.content.identifier)”")
        }
        for case .picker(let picker) in groups {
            let picks = picker.options.filter(\.isSelected)
            guard picks.count == 1 else {
                throw ServiceError(
                    .optionConflict,
                    picks.isEmpty
                        ? "no option of the group “\(picker.identifier)” is selected: it takes one"
                        : "“\(picks[0].identifier)” and “\(picks[1].identifier)” are both selected: the group takes one"
                )
            }
        }
        for option in options {
            if let stranger = option.requiredOptionsIdentifiers.first(where: { !known.contains($0) }) {
                throw ServiceError(
                    .unknownOption, "“\(option.identifier)” requires “\(stranger)”, and there is no such option")
            }
            guard option.isSelected else { continue }
            if let missing = option.requiredOptionsIdentifiers.first(where: { !selected.contains($0) }) {
                throw ServiceError(
                    .optionRequired, "“\(option.identifier)” requires “\(missing)”, which is not selected")
            }
        }
    }
}
