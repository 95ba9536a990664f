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
            shareOptions: options, createdAt: context.now)
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

extension StoredCollaboration {
    /// The highlight of the collaboration, which the system shows.
    func highlight(_ identifier: CollaborationIdentifier, _ context: RuleContext) -> CollaborationHighlight {
        CollaborationHighlight(
            collaborationIdentifier: identifier, title: title, creationDate: createdAt,
            url: context.settings.link(of: identifier), summary: shareOptions.summary)
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

extension CollaborationSettings {
    /// Bytes of an identifier that a path takes as they are (RFC 3986, section 2.3).
    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    private var linkStart: String? {
        linkBase.map { $0.hasSuffix("/") ? $0 : $0 + "/" }
    }

    /// The universal link of a collaboration; `nil` without a base.
    func link(of collaboration: CollaborationIdentifier) -> URL? {
        guard let linkStart,
            let name = collaboration.description.addingPercentEncoding(
                withAllowedCharacters: CollaborationSettings.unreserved)
        else { return nil }
        return URL(string: linkStart + name)
    }

    /// The collaboration that a link leads to; `nil` when it is not one of ours. Query and fragment don't matter.
    func collaboration(of link: URL) -> CollaborationIdentifier? {
        guard let linkStart, link.absoluteString.hasPrefix(linkStart) else { return nil }
        let rest = link.absoluteString.dropFirst(linkStart.count).prefix { $0 != "?" && $0 != "#" }
        guard !rest.contains("/") else { return nil }
        return rest.removingPercentEncoding.flatMap { CollaborationIdentifier($0) }
    }
}

/// Undoes a start that failed: removes the collaboration and its start. Refused when anyone but the owner takes part.
/// Changes nothing when there is no such start.
public struct AbandonCollaboration: RuledRequest {
    public static let name = "abandon"
    public typealias Answer = ChangeReceipt

    public var owner: Account
    public var localIdentifier: LocalCollaborationIdentifier

    public init(owner: Account, localIdentifier: LocalCollaborationIdentifier) {
        self.owner = owner
        self.localIdentifier = localIdentifier
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkName(localIdentifier.rawValue, "a local identifier")
        guard let start = try records.record(RecordKeys.start(owner, localIdentifier)),
            let identifier = CollaborationIdentifier(utf8: start.value)
        else { return .unchanged }
        // Removed participants have no access record.
        let accesses = try records.records(
            in: .beginning(with: RecordKeys.accesses(identifier)), limit: 2, isDescending: false)
        guard accesses.items.allSatisfy({ $0.value.last == ParticipantRole.owner.code }) else {
            throw ServiceError(.notPermitted, "others take part in \(identifier): stop sharing it instead")
        }
        // The edit is stale when a participant was added at the same time.
        let arrivals = try records.record(RecordKeys.arrivals(identifier))
        return try .ending(
            identifier, try records.collaboration(identifier), records,
            expectingArrivals: arrivals.map { .version($0.version) } ?? .absent)
    }
}

/// Ends a collaboration: deletes its set, participants, notices and invitations, and revokes every grant.
public struct StopSharing: RuledRequest {
    public static let name = "stopSharing"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier

    public init(_ collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try .ending(collaboration, try records.collaboration(collaboration), records)
    }
}

extension Decision<ChangeReceipt> {
    /// Ends a collaboration. Records of accounts and invitations that name it are removed as far as one edit allows.
    /// Readers ignore those that are left.
    fileprivate static func ending(
        _ identifier: CollaborationIdentifier, _ found: Loaded<StoredCollaboration>,
        _ records: borrowing some RecordReader & ~Copyable, expectingArrivals: RecordEdit.Expectation = .anything
    ) throws(ServiceError) -> Decision {
        let hasSet = try records.hasSet(of: identifier)
        var edit = Edit(hasSet ? identifier : nil)
        edit.dropsCollaboration = hasSet
        edit.removedRanges = RecordKeys.everything(of: identifier)
        edit.records = [
            RecordEdit(RecordKeys.collaboration(identifier), value: nil, expecting: .version(found.version)),
            RecordEdit(RecordKeys.defaultPermission(identifier), value: nil),
            RecordEdit(RecordKeys.arrivals(identifier), value: nil, expecting: expectingArrivals),
            RecordEdit(RecordKeys.start(found.value.owner, found.value.localIdentifier), value: nil),
        ]
        var topics: [Topic] = [.collaboration(identifier)]
        let links = try records.records(
            in: .beginning(with: RecordKeys.links(identifier)), limit: 1000, isDescending: false)
        for link in links.items {
            guard let account = Account(String(decoding: link.value, as: UTF8.self)),
                let root = Digest(link.key.suffix(Digest.byteCount))
            else { continue }
            edit.records.append(
                RecordEdit(RecordKeys.linked(account, identifier, PersonIdentity(rootHash: root)), value: nil))
            topics.append(.account(account))
        }
        let prefix = RecordKeys.invitations(identifier)
        let invitations = try records.records(in: .beginning(with: prefix), limit: 1000, isDescending: false)
        for record in invitations.items {
            let name = Array(record.key.dropFirst(prefix.count))
            guard name.count == RecordKeys.invitationBytes else { continue }
            edit.records.append(RecordEdit(RecordKeys.invitationPlace(name), value: nil))
            if let account = try record.decoded(StoredInvitation.self).acceptedBy {
                edit.records.append(RecordEdit(RecordKeys.accepted(account, identifier), value: nil))
            }
        }
        return .change(edit, topics: topics, count: 1)
    }
}

/// The highlight of a collaboration, from its identifier or its link.
public struct FindHighlight: RuledRequest {
    public static let name = "highlight"
    package static let isQuery = true
    public typealias Answer = CollaborationHighlight

    public var collaboration: CollaborationIdentifier?
    public var url: URL?

    public init(_ collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
    }

    public init(url: URL) {
        self.url = url
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard let identifier = collaboration ?? url.flatMap(context.settings.collaboration(of:)) else {
            throw ServiceError(
                .unknownCollaboration,
                "the link does not lead to a collaboration of this service, whose links begin with its --link-base")
        }
        return .answer(try records.collaboration(identifier).value.highlight(identifier, context))
    }
}

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
        try check(stored.shareOptions.summary, "a permission summary")
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
