public import Core
public import Foundation

/// Starts a collaboration: gives it an identifier that all devices know, and a universal link. Another request with the
/// same owner and local identifier gets the same ones. `isNew` tells whether this request has started it.
///
/// For a collaboration that was started before, the request applies what the owner says anew: the options that it
/// selects explicitly, and an identity while the owner has none. The answer tells what holds afterwards.
public struct PrepareCollaboration: RuledRequest {
    public static let name = "prepare"

    public struct Answer: Hashable, Codable, Sendable {
        public let collaborationIdentifier: CollaborationIdentifier
        public let url: URL
        public let isNew: Bool
        public let highlight: CollaborationHighlight
        /// Identifiers of the options that are selected now.
        public let selectedOptions: [String]
        /// What participants without a permission of their own may do now.
        public let permission: Permission
        /// The place of the request in the change log; `nil` when it has changed nothing and there was no room to
        /// remember it, or when a repetition finds what was started after the first request.
        public let sequence: UInt64?
    }

    public var owner: Account
    /// The description of the content: local identifier, title, initiator and share options.
    public var metadata: CollaborationMetadata
    /// Identifiers of the selected options; `nil`: as in the metadata.
    public var selectedOptions: [String]?
    /// Makes this person the owner among the participants, once.
    public var ownerIdentity: PersonIdentity?
    /// The owner's name in notices, unless the metadata names the initiator.
    public var ownerName: String?
    /// Devices sign nonces of their own choice, which are remembered for that long; `nil`: they sign challenges.
    public var nonceWindowSeconds: UInt32?

    public init(
        owner: Account, metadata: CollaborationMetadata, selectedOptions: [String]? = nil,
        ownerIdentity: PersonIdentity? = nil, ownerName: String? = nil, nonceWindowSeconds: UInt32? = nil
    ) {
        self.owner = owner
        self.metadata = metadata
        self.selectedOptions = selectedOptions
        self.ownerIdentity = ownerIdentity
        self.ownerName = ownerName
        self.nonceWindowSeconds = nonceWindowSeconds
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkNames()
        let start = RecordKeys.start(owner, metadata.localIdentifier)
        if let known = try records.record(start) {
            guard let identifier = CollaborationIdentifier(utf8: known.value) else {
                throw ServiceError(.storageDamaged, "the record of a start is damaged")
            }
            return try decideAgain(identifier, startedAt: known.version, context, records)
        }
        return try starting(as: try context.freshIdentifier(), at: context.now, context, records)
    }

    /// Starts a collaboration that does not exist, while the owner has started no content of that name.
    func starting(
        as identifier: CollaborationIdentifier, at date: Date, _ context: RuleContext,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        var stored = try fresh(at: date)
        var edit = Edit(identifier)
        edit.creation = try policy()
        let start = RecordKeys.start(owner, metadata.localIdentifier)
        edit.records = [RecordEdit(start, value: identifier.utf8, expecting: .absent)]
        if let ownerIdentity {
            try Ownership.add(
                ownerIdentity, named: stored.initiatorName, to: &stored, identifier, &edit, context, records)
        }
        edit.records.append(try .json(RecordKeys.collaboration(identifier), stored, expecting: .absent))
        edit.records += stored.optionRecords(identifier, before: nil)
        return try .editing(edit, identifier, stored, isNew: true, context)
    }

    /// Decides about a collaboration that was started at `sequence`.
    private func decideAgain(
        _ identifier: CollaborationIdentifier, startedAt sequence: UInt64, _ context: RuleContext,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let found = try records.collaboration(identifier)
        if let earlier = context.earlier {
            // A repetition of a request that was applied changes nothing and tells the present state.
            return .answer(
                try Answer(
                    identifier, found.value, isNew: sequence == earlier,
                    sequence: earlier >= sequence ? earlier : nil, context))
        }
        guard nonceWindowSeconds == nil || nonceWindowSeconds == found.value.nonceWindowSeconds else {
            throw ServiceError(.collaborationExists, "\(identifier) was started with another policy")
        }
        var stored = found.value
        if let options = try explicitOptions(stored) {
            stored.shareOptions = options
            try checkDefaultPermission(stored, identifier)
        }
        try stored.checkSummary()
        var edit = Edit(identifier)
        edit.records = stored.optionRecords(identifier, before: found.value)
        if let ownerIdentity {
            let name = StoredCollaboration.name(of: metadata.initiatorNameComponents, else: ownerName)
            try Ownership.add(
                ownerIdentity, named: name ?? stored.initiatorName, to: &stored, identifier, &edit, context, records)
        }
        let key = RecordKeys.collaboration(identifier)
        guard stored != found.value else {
            let empty = Edit.remembering(identifier, [.checking(key, expecting: .version(found.version))])
            guard !saysMore else { return try .editing(empty, identifier, stored, isNew: false, context) }
            let prepared = try Answer(identifier, stored, isNew: false, sequence: nil, context)
            return .note(empty) { prepared.at($0) }
        }
        edit.records.append(try .json(key, stored, expecting: .version(found.version)))
        return try .editing(edit, identifier, stored, isNew: false, context)
    }

    /// A choice of options leaves the default permission as it is. When nothing but that decides, another one in the
    /// request would say something that is not so.
    ///
    /// Throws `collaborationExists`.
    private func checkDefaultPermission(
        _ stored: StoredCollaboration, _ identifier: CollaborationIdentifier
    ) throws(ServiceError) {
        guard stored.shareOptions.permission == nil, let said = metadata.defaultPermission, said != stored.permission
        else { return }
        throw ServiceError(
            .collaborationExists,
            """
            \(identifier) was started with the default permission \(stored.permission.rawValue): select an option with \
            the effect \(said.rawValue)
            """)
    }

    private var choosesOptions: Bool { selectedOptions != nil || metadata.userSelectedShareOptions != nil }

    /// Whether the request could change a collaboration that was started before.
    private var saysMore: Bool { choosesOptions || ownerIdentity != nil }

    /// The options that the owner has chosen in this request; `nil` when it brings default options at most.
    private func explicitOptions(_ stored: StoredCollaboration) throws(ServiceError) -> ShareOptions? {
        guard choosesOptions else { return nil }
        return try chosen(from: metadata.shareOptions ?? stored.shareOptions)
    }

    private func chosen(from options: ShareOptions) throws(ServiceError) -> ShareOptions {
        try options.checkSizes(
            metadata.userSelectedShareOptions == nil
                ? "metadata.defaultShareOptions" : "metadata.userSelectedShareOptions")
        var options = options
        options.dropEmptySummary()
        guard let selectedOptions else {
            try options.check()
            return options
        }
        return try options.selecting(selectedOptions)
    }

    /// Throws what a start is refused with whatever is stored, apart from its names.
    func checkStart() throws(ServiceError) {
        _ = try policy()
        _ = try fresh(at: .distantPast)
    }

    private func fresh(at date: Date) throws(ServiceError) -> StoredCollaboration {
        let stored = StoredCollaboration(
            owner: owner, localIdentifier: metadata.localIdentifier, title: metadata.title,
            initiatorHandle: metadata.initiatorHandle, initiatorNameComponents: metadata.initiatorNameComponents,
            ownerName: ownerName,
            shareOptions: try chosen(from: metadata.shareOptions ?? ShareOptions(optionsGroups: [])),
            defaultPermission: metadata.defaultPermission, nonceWindowSeconds: nonceWindowSeconds,
            createdAt: date)
        try stored.checkSummary()
        return stored
    }

    /// Throws `malformedRequest` when the window is out of its range.
    private func policy() throws(ServiceError) -> ProofPolicy {
        guard let nonceWindowSeconds else { return .challenge }
        guard Limits.nonceWindowSecondsMin...Limits.nonceWindowSecondsMax ~= nonceWindowSeconds else {
            throw ServiceError(
                .malformedRequest,
                """
                nonceWindowSeconds is from \(Limits.nonceWindowSecondsMin) to \(Limits.nonceWindowSecondsMax)
                """)
        }
        return .deviceNonce(windowSeconds: nonceWindowSeconds)
    }

    /// Throws unless the local identifier is a name and all texts are texts.
    func checkNames() throws(ServiceError) {
        try checkName(metadata.localIdentifier.rawValue, "metadata.localIdentifier")
        try check(metadata.title, "metadata.title")
        try check(metadata.initiatorHandle, "metadata.initiatorHandle")
        try check(ownerName, "ownerName")
        try metadata.initiatorNameComponents?.check("metadata.initiatorNameComponents")
    }
}

extension PrepareCollaboration.Answer {
    /// Throws `noLinkBase`.
    init(
        _ identifier: CollaborationIdentifier, _ stored: StoredCollaboration, isNew: Bool, sequence: UInt64?,
        _ context: RuleContext
    ) throws(ServiceError) {
        let highlight = stored.highlight(identifier, context)
        guard let url = highlight.url else {
            throw ServiceError(
                .noLinkBase, "the service has no base for links: start it with --link-base")
        }
        self.init(
            collaborationIdentifier: identifier, url: url, isNew: isNew, highlight: highlight,
            selectedOptions: stored.shareOptions.selectedIdentifiers, permission: stored.permission,
            sequence: sequence)
    }

    fileprivate func at(_ sequence: UInt64?) -> PrepareCollaboration.Answer {
        PrepareCollaboration.Answer(
            collaborationIdentifier: collaborationIdentifier, url: url, isNew: isNew, highlight: highlight,
            selectedOptions: selectedOptions, permission: permission, sequence: sequence)
    }
}

extension Decision<PrepareCollaboration.Answer> {
    /// Applies the edit and answers what holds then. Throws `noLinkBase`.
    fileprivate static func editing(
        _ edit: Edit, _ identifier: CollaborationIdentifier, _ stored: StoredCollaboration, isNew: Bool,
        _ context: RuleContext
    ) throws(ServiceError) -> Decision {
        let prepared = try PrepareCollaboration.Answer(identifier, stored, isNew: isNew, sequence: nil, context)
        return .edit(edit, topics: edit.isEmpty ? [] : [.collaboration(identifier)]) { prepared.at($0.sequence) }
    }
}

extension ShareOptions {
    /// Throws `limitExceeded` unless groups, options and texts are within their limits, and `malformedRequest` when a
    /// text has control characters. `field`: the field with these options.
    func checkSizes(_ field: String) throws(ServiceError) {
        try checkLimit(groups.count, Limits.optionGroupsMax, "groups of options")
        try checkLimit(groups.flatMap(\.options).count, Limits.optionsMax, "options")
        for (index, group) in optionsGroups.enumerated() {
            let field = "\(field).groups[\(index)]"
            try Collaboration.check(group.identifier, "\(field).identifier")
            try checkForm(group.identifier, "\(field).identifier")
            try Collaboration.check(group.title, "\(field).title")
            try Collaboration.check(group.footer, "\(field).footer")
            for (index, option) in group.options.enumerated() {
                let field = "\(field).options[\(index)]"
                try Collaboration.check(option.identifier, "\(field).identifier")
                try checkForm(option.identifier, "\(field).identifier")
                try Collaboration.check(option.title, "\(field).title")
                try Collaboration.check(option.subtitle, "\(field).subtitle")
                for (index, required) in option.requiredOptionsIdentifiers.enumerated() {
                    try Collaboration.check(required, "\(field).requiredOptionsIdentifiers[\(index)]")
                }
                try checkLimit(option.effects.count, OptionEffect.allCases.count, "\(field).effects")
            }
        }
        try Collaboration.check(givenSummary, "\(field).givenSummary")
    }
}

extension NameComponents {
    /// Throws `limitExceeded` or `malformedRequest` unless each part and the whole name are texts.
    fileprivate func check(_ field: String) throws(ServiceError) {
        try Collaboration.check(givenName, "\(field).givenName")
        try Collaboration.check(familyName, "\(field).familyName")
        try Collaboration.check(nickname, "\(field).nickname")
        try Collaboration.check(formatted, field)
    }
}

extension RuleContext {
    /// 127 random bits in base64url: the identifier can't be guessed, and a link contains it without escapes.
    fileprivate func freshIdentifier() throws(ServiceError) -> CollaborationIdentifier {
        guard let identifier = CollaborationIdentifier(Base64URL.text(random.nameBytes())) else {
            throw ServiceError(.internalFault, "a random identifier is not valid")
        }
        return identifier
    }
}
