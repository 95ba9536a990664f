package import Core

/// An account's shares: those that it has started, or those in which it takes part by an invitation.
public struct ListShares: RuledRequest {
    public static let name = "listShares"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        public let shares: [CollaborationHighlight]
        /// To be given as `after` for the next page; `nil` when there is none.
        public let next: String?
    }

    public var account: Account
    public var scope: Scope
    /// The `next` of the page before.
    public var after: String?
    public var limit: Int

    public init(of account: Account, scope: Scope, after: String? = nil, limit: Int = 256) {
        self.account = account
        self.scope = scope
        self.after = after
        self.limit = limit
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.sharesPerPageMax)
        let prefix = scope == .private ? RecordKeys.starts(account) : RecordKeys.accepted(account)
        var range = RecordRange.beginning(with: prefix)
        if let after {
            try checkName(after, "after")
            range.start = prefix + Array(after.utf8) + [0]
        }
        var shares: [CollaborationHighlight] = []
        var bytes = 0
        var last: String?
        let page = try records.records(in: range, limit: limit, isDescending: false)
        for record in page.items {
            guard bytes < Limits.sharesPageBytesMax else { return .answer(Answer(shares: shares, next: last)) }
            last = String(decoding: record.key.dropFirst(prefix.count), as: UTF8.self)
            let name = scope == .private ? record.value : Array(record.key.dropFirst(prefix.count))
            guard let identifier = CollaborationIdentifier(utf8: name),
                let found = try records.load(StoredCollaboration.self, at: RecordKeys.collaboration(identifier))
            else { continue }
            if scope == .shared {
                // What the account owns is no share that it takes part in, also when it has other people in it.
                guard found.value.owner != account, try takesPart(in: identifier, records) else { continue }
            }
            let share = found.value.highlight(identifier, context, isOwners: scope == .private)
            bytes += share.textBytes
            shares.append(share)
        }
        return .answer(Answer(shares: shares, next: page.hasMore ? last : nil))
    }

    /// Whether the account takes part: as a person whom the record of the share names, or as one that it is linked
    /// to. A root hash may have left the set without the layer.
    private func takesPart(
        in collaboration: CollaborationIdentifier, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Bool {
        let linked = try records.records(
            in: .beginning(with: RecordKeys.linked(account, collaboration)), limit: Limits.identitiesPerAccountMax,
            isDescending: false)
        for record in linked.items {
            guard let root = Digest(record.key.suffix(Digest.byteCount)) else { continue }
            let person = PersonIdentity(rootHash: root)
            if try records.isLinked(account, to: person, in: collaboration),
                try records.isInSet(person, of: collaboration)
            {
                return true
            }
        }
        for person in try records.share(of: account, in: collaboration).people
        where try records.isInSet(person, of: collaboration) {
            return true
        }
        return false
    }
}

extension CollaborationHighlight {
    /// Bytes of all texts.
    fileprivate var textBytes: Int {
        [title, url?.absoluteString, summary, initiatorHandle, initiatorName, localIdentifier?.rawValue]
            .reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }
}
