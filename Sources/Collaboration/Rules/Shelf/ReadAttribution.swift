package import Core
public import Foundation

/// What an attribution view shows of an item, and its menu. Names, avatars and conversations are for the system's side,
/// which draws the view; an app gets handles.
public struct ReadAttribution: RuledRequest {
    public static let name = "readAttribution"
    package static let isQuery = true
    public typealias Answer = AttributionDetails

    /// What the title of the entry that removes an item must contain.
    public static let removeWord = "Remove"

    public var account: Account
    /// The app that reads; see `ShelfScope`.
    public var app: String?
    public var everyApp: Bool?
    public var url: URL
    /// The title of the entry that removes the item, with the word in it.
    public var removeTitle: String?

    public init(_ url: URL, of account: Account, for scope: ShelfScope, removeTitle: String? = nil) {
        self.account = account
        (app, everyApp) = (scope.app, scope.everyApp)
        self.url = url
        self.removeTitle = removeTitle
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try check(removeTitle, "removeTitle")
        if let removeTitle, !removeTitle.localizedCaseInsensitiveContains(ReadAttribution.removeWord) {
            throw ServiceError(
                .malformedRequest, "removeTitle does not contain the word \(ReadAttribution.removeWord)")
        }
        let view = try ShelfView(account, try ShelfScope(app: app, everyApp: everyApp), context, records)
        let shares = try records.shares(of: url, view, context)
        let told = try attributions(of: shares, limit: Limits.attributionsPerItemMax, view)
        let replies = told.map { attribution in
            let name = attribution.conversation?.name ?? attribution.sharer?.name
            return AttributionDetails.MenuAction(
                kind: .reply, title: name.map { "Reply to \($0)" } ?? "Reply", handle: attribution.handle,
                conversation: attribution.conversation?.identifier)
        }
        let remove = AttributionDetails.MenuAction(
            kind: .remove, title: removeTitle ?? "Remove", handle: nil, conversation: nil)
        var summary: String?
        if view.scope == .everyApp {
            let names = try attributions(of: shares, limit: .max, view).compactMap(\.sharer?.name)
            summary = attributionSummary(of: names)
        }
        return .answer(
            AttributionDetails(
                url: url, summary: summary, isPinned: shares.contains { $0.head.isPinned }, attributions: told,
                menu: replies + [remove]))
    }
}

private func attributions(
    of shares: [StoredShare], limit: Int, _ view: ShelfView
) throws(ServiceError) -> [Attribution] {
    var told: [Attribution] = []
    for share in shares.prefix(limit) { told.append(try share.attribution(for: view.scope)) }
    return told
}

/// “From Ana”, “From Ana and Bo”, “From Ana and 2 others”: each sharer once, the latest first.
private func attributionSummary(of sharers: [String]) -> String {
    var names: [String] = []
    for name in sharers where !names.contains(name) { names.append(name) }
    switch names.count {
    case 0: return ""
    case 1: return "From \(names[0])"
    case 2: return "From \(names[0]) and \(names[1])"
    default: return "From \(names[0]) and \(names.count - 1) others"
    }
}
