package import Core
public import Principals

/// Lists principals by their names.
public struct ListPrincipals: RuledRequest {
    public static let name = "listPrincipals"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        public let principals: [ListedPrincipal]
        public let hasMore: Bool
    }

    /// Only principals after this one.
    public var after: PrincipalName?
    public var limit: Int

    public init(after: PrincipalName? = nil, limit: Int = 256) {
        self.after = after
        self.limit = limit
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.principalsPerPageMax)
        var range = RecordKeys.principals
        if let after { range.start = RecordKeys.principal(after) + [0] }
        let page = try records.records(in: range, limit: limit, isDescending: false)
        var listed: [ListedPrincipal] = []
        for record in page.items {
            listed.append(try self.listed(try record.decoded(PrincipalRecord.self), records))
        }
        return .answer(Answer(principals: listed, hasMore: page.hasMore))
    }

    private func listed(
        _ record: PrincipalRecord, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> ListedPrincipal {
        var keys: [ListedPrincipal.Key] = []
        for key in record.keys {
            keys.append(
                ListedPrincipal.Key(
                    identifier: key.hash.identifier, createdAt: key.createdAt, expiresAt: key.expiresAt,
                    lastUsedAt: try records.lastUse(record.name, key.hash.identifier)))
        }
        return ListedPrincipal(
            name: record.name, roles: record.roles, keys: keys, certificates: record.certificates,
            localUser: record.localUser, limits: record.limits, createdAt: record.createdAt,
            expiresAt: record.expiresAt, lastUsedAt: try records.lastUse(record.name, nil))
    }
}
