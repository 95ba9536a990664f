package import Core
public import Foundation

/// What an attribution view shows of an item, and its menu.
public struct ReadAttribution: RuledRequest {
    public static let name = "readAttribution"
    package static let isQuery = true
    public typealias Answer = AttributionDetails

    public var account: Account
    public var url: URL
    /// The title of the entry that removes the item, with the word “Remove” of the language in it.
    public var removeTitle: String?
    /// The language of the texts, a tag of BCP 47; `nil`: English.
    public var language: String?

    public init(_ url: URL, of account: Account, removeTitle: String? = nil, language: String? = nil) {
        self.account = account
        self.url = url
        self.removeTitle = removeTitle
        self.language = language
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        try check(removeTitle, "a title")
        try checkLanguage(language)
        let language = Language.of(language)
        if let removeTitle, !language.saysRemove(removeTitle) {
            throw ServiceError(
                .malformedRequest,
                "removeTitle does not contain the word “\(language.attribution.remove)”, in any of its forms")
        }
        let shares = try records.shares(of: url, account, context)
        let told = Array(shares.prefix(Limits.attributionsPerItemMax))
        let replies = told.map { attribution in
            AttributionDetails.MenuAction(
                kind: .reply, title: language.reply(to: attribution.conversation.name ?? attribution.sharer.name),
                conversation: attribution.conversation.identifier)
        }
        let remove = AttributionDetails.MenuAction(
            kind: .remove, title: removeTitle ?? language.attribution.remove, conversation: nil)
        return .answer(
            AttributionDetails(
                url: url, summary: language.summary(from: distinct(shares.map(\.sharer.name))),
                isPinned: shares.contains { $0.isPinned }, attributions: told, menu: replies + [remove]))
    }
}

/// Each sharer once, the latest first.
private func distinct(_ sharers: [String]) -> [String] {
    var names: [String] = []
    for name in sharers where !names.contains(name) { names.append(name) }
    return names
}
