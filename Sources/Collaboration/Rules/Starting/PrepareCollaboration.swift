public import Core
public import Foundation

/// Starts a collaboration: gives it an identifier that all devices know, and a universal link. Another request with the
/// same owner and local identifier gets the same ones. `isNew` tells whether this request has started it.
public struct PrepareCollaboration: RuledRequest {
    public static let name = "prepare"

    public struct Answer: Hashable, Codable, Sendable {
        public let collaborationIdentifier: CollaborationIdentifier
        public let url: URL
        public let isNew: Bool
        public let highlight: CollaborationHighlight
        /// Of the change that started the collaboration; `nil` when it existed before.
        public let sequence: UInt64?
    }

    public var owner: Account
    /// The description of the content: local identifier, title, initiator and share options.
    public var metadata: CollaborationMetadata
    /// Identifiers of the selected options; `nil`: as in the metadata.
    public var selectedOptions: [String]?
    /// Adds the owner as a participant at once.
    public var ownerIdentity: PersonIdentity?
    /// The owner's name in notices.
    public var ownerName: String?

    public init(
        owner: Account, metadata: CollaborationMetadata, selectedOptions: [String]? = nil,
        ownerIdentity: PersonIdentity? = nil, ownerName: String? = nil
    ) {
        self.owner = owner
        self.metadata = metadata
        self.selectedOptions = selectedOptions
        self.ownerIdentity = ownerIdentity
        self.ownerName = ownerName
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let local = metadata.localIdentifier
        try checkName(local.rawValue, "a local identifier")
        let start = RecordKeys.start(owner, local)
        if let known = try records.record(start), let identifier = CollaborationIdentifier(utf8: known.value) {
            let found = try records.collaboration(identifier)
            // A repetition of the request that started the collaboration gets that request's answer.
            let isNew = known.version == context.earlier
            return .answer(
                try answer(identifier, found.value, context, isNew: isNew, sequence: isNew ? known.version : nil))
        }
        let identifier = try context.freshIdentifier()
        let stored = try stored(context)
        let prepared = try answer(identifier, stored, context, isNew: true, sequence: nil)
        var edit = Edit(identifier)
        edit.creation = .challenge
        edit.records = [
            RecordEdit(start, value: identifier.utf8, expecting: .absent),
            try .json(RecordKeys.collaboration(identifier), stored, expecting: .absent),
            RecordEdit(
                RecordKeys.defaultPermission(identifier), value: DefaultPermission.value(stored.shareOptions.permission)
            ),
        ]
        if let ownerIdentity {
            edit.addedRoots = [ownerIdentity.rootHash]
            edit.records += try StoredParticipant.records(
                of: NewParticipant(
                    ownerIdentity, displayName: ownerName ?? metadata.initiatorNameComponents?.formatted, role: .owner,
                    permission: .readWrite),
                in: identifier, at: context.now, version: nil)
        }
        return .edit(edit, topics: [.collaboration(identifier)]) { receipt in
            Answer(
                collaborationIdentifier: identifier, url: prepared.url, isNew: true, highlight: prepared.highlight,
                sequence: receipt.sequence)
        }
    }

    private func stored(_ context: RuleContext) throws(ServiceError) -> StoredCollaboration {
        var options = metadata.shareOptions ?? ShareOptions(optionsGroups: [])
        try options.checkSizes()
        if let selectedOptions { options = try options.selecting(selectedOptions) } else { try options.check() }
        try check(options.summary, "a permission summary")
        try check(metadata.title, "a title")
        try check(metadata.initiatorHandle, "a handle")
        try check(ownerName, "a name")
        try check(metadata.initiatorNameComponents?.formatted, "a name")
        return StoredCollaboration(
            owner: owner, localIdentifier: metadata.localIdentifier, title: metadata.title,
            initiatorHandle: metadata.initiatorHandle, initiatorNameComponents: metadata.initiatorNameComponents,
            ownerName: ownerName, shareOptions: options, createdAt: context.now)
    }

    private func answer(
        _ identifier: CollaborationIdentifier, _ stored: StoredCollaboration, _ context: RuleContext, isNew: Bool,
        sequence: UInt64?
    ) throws(ServiceError) -> Answer {
        let highlight = stored.highlight(identifier, context)
        guard let url = highlight.url else {
            throw ServiceError(
                .noLinkBase, "the service has no base for links: start it with --link-base")
        }
        return Answer(
            collaborationIdentifier: identifier, url: url, isNew: isNew, highlight: highlight, sequence: sequence)
    }
}

extension ShareOptions {
    /// Throws `limitExceeded` unless groups, options and texts are within their limits.
    fileprivate func checkSizes() throws(ServiceError) {
        try checkLimit(groups.count, Limits.optionGroupsMax, "groups of options")
        try checkLimit(groups.flatMap(\.options).count, Limits.optionsMax, "options")
        for group in optionsGroups {
            for text in [group.identifier, group.title, group.footer] {
                try Collaboration.check(text, "a group's text")
            }
            for option in group.options {
                for text in [option.identifier, option.title, option.subtitle] + option.requiredOptionsIdentifiers {
                    try Collaboration.check(text, "an option's text")
                }
            }
        }
        try Collaboration.check(summary, "a permission summary")
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
