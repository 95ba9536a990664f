public import Core

/// Selects other share options, or replaces them. A participant without a permission of his own inherits their
/// permission; when it changes, his grants are revoked.
public struct UpdateShareOptions: RuledRequest {
    public static let name = "updateShareOptions"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// Identifiers of exactly the options that are selected from now on; `nil`: those that the options say themselves.
    public var selectedOptions: [String]?
    /// Options that replace the present ones; `nil`: the present ones stay.
    public var shareOptions: ShareOptions?
    /// The summary of this selection. `nil`: a summary that was given for another selection is dropped.
    public var givenSummary: String?
    /// The options that the request takes for the present ones: when they are others, it is refused. `nil`: whatever
    /// they are.
    public var presentOptions: ShareOptions?
    /// The grant of the participant who changes the options; `nil`: the backend does.
    public var grant: AccessGrant?

    public init(
        _ collaboration: CollaborationIdentifier, selectedOptions: [String]? = nil,
        replacing options: ShareOptions? = nil,
        givenSummary: String? = nil, ifPresent presentOptions: ShareOptions? = nil, by grant: AccessGrant? = nil
    ) {
        self.presentOptions = presentOptions
        self.collaboration = collaboration
        self.selectedOptions = selectedOptions
        self.shareOptions = options
        self.givenSummary = givenSummary
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard selectedOptions != nil || shareOptions != nil || givenSummary != nil else {
            throw ServiceError(
                .malformedRequest, "say selectedOptions, shareOptions or givenSummary: there is nothing to change")
        }
        try check(givenSummary, "givenSummary")
        try shareOptions?.checkSizes("shareOptions")
        try presentOptions?.checkSizes("presentOptions")
        let found = try records.collaboration(collaboration)
        let authority = try records.authority(of: grant, for: .changeOptions, in: collaboration, found, context)
        if let presentOptions, presentOptions != found.value.shareOptions {
            throw ServiceError(.optionConflict, "the share options are others than presentOptions: read them again")
        }
        var options = shareOptions ?? found.value.shareOptions
        if let selectedOptions { options = try options.selecting(selectedOptions) } else { try options.check() }
        if let givenSummary { options.givenSummary = givenSummary }
        options.dropEmptySummary()
        var stored = found.value
        stored.shareOptions = options
        try stored.checkSummary()
        if stored.permission != found.value.permission {
            try authority.checkGiving(role: nil, permission: stored.permission)
        }
        let key = RecordKeys.collaboration(collaboration)
        let expectations = authority.expectations(in: collaboration)
        guard stored != found.value else {
            return .remembered(collaboration, expectations + [.checking(key, expecting: .version(found.version))])
        }
        var edit = Edit(collaboration)
        edit.records = expectations
        edit.records.append(try .json(key, stored, expecting: .version(found.version)))
        edit.records += stored.optionRecords(collaboration, before: found.value)
        return .change(edit, topics: [.collaboration(collaboration)], count: 1)
    }
}
