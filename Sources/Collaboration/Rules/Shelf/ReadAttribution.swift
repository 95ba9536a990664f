package import Core
public import Foundation

/// What an attribution view shows of an item, and its menu.
public struct ReadAttribution: RuledRequest {
    public static let name = "readAttribution"
    package static let isQuery = true
    public typealias Answer = AttributionDetails

    /// What the title of the entry that removes an item must contain.
    public static let removeWord = "Remove"

    public var account: Account
    public var url: URL
    /// The title of the entry that removes the item, with the word in it.
    public var removeTitle: String?

    public init(_ url: URL, of account: Account, removeTitle: String? = nil) {
        self.account = account
        self.url = url
        self.removeTitle = removeTitle
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        try check(removeTitle, "a title")
        if let removeTitle, !removeTitle.localizedCaseInsensitiveContains(ReadAttribution.removeWord) {
            throw ServiceError(
                .malformedRequest, "the title “\(removeTitle)” does not contain the word \(ReadAttribution.removeWord)")
        }
        let shares = try records.shares(of: url, account, context)
        let told = Array(shares.prefix(Limits.attributionsPerItemMax))
        let replies = told.map { attribution in
            AttributionDetails.MenuAction(
                kind: .reply, title: "Reply to \(attribution.conversation.name ?? attribution.sharer.name)",
                conversation: attribution.conversation.identifier)
        }
        let remove = AttributionDetails.MenuAction(kind: .remove, title: removeTitle ?? "Remove", conversation: nil)
        return .answer(
            AttributionDetails(
                url: url, summary: attributionSummary(of: shares.map(\.sharer.name)),
                isPinned: shares.contains { $0.isPinned }, attributions: told, menu: replies + [remove]))
    }
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
