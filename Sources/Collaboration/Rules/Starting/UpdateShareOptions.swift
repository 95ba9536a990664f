public import Core

/// Selects other share options. A participant without a permission of his own inherits their permission; when it
/// changes, his grants are revoked.
public struct UpdateShareOptions: RuledRequest {
    public static let name = "updateShareOptions"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// Identifiers of exactly the options that are selected from now on.
    public var selectedOptions: [String]

    public init(_ collaboration: CollaborationIdentifier, selectedOptions: [String]) {
        self.collaboration = collaboration
        self.selectedOptions = selectedOptions
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let found = try records.collaboration(collaboration)
        var stored = found.value
        let before = stored.shareOptions
        stored.shareOptions = try before.selecting(selectedOptions)
        try check(stored.shareOptions.summary, "the summary")
        guard stored.shareOptions != before else { return .unchanged }
        var edit = Edit(collaboration)
        edit.records = [
            try .json(RecordKeys.collaboration(collaboration), stored, expecting: .version(found.version))
        ]
        if stored.shareOptions.permission != before.permission {
            edit.records.append(
                RecordEdit(
                    RecordKeys.defaultPermission(collaboration),
                    value: DefaultPermission.value(stored.shareOptions.permission),
                    expecting: .present))
        }
        return .change(edit, topics: [.collaboration(collaboration)], count: 1)
    }
}
