package import Core
public import Foundation

/// What an attribution view shows of an item, and its menu. Names, avatars and conversations are for the system's side,
/// which draws the view; an app gets handles.
public struct ReadAttribution: RuledRequest {
    public static let name = "readAttribution"
    package static let isQuery = true
    public typealias Answer = AttributionDetails

    public var account: Account
    /// The app that reads; see `ShelfScope`.
    public var app: String?
    public var everyApp: Bool?
    public var url: URL
    /// The title of the entry that removes the item, with the word “Remove” of the language in it.
    public var removeTitle: String?
    /// The language of the texts, a tag of BCP 47; `nil`: English.
    public var language: String?

    public init(
        _ url: URL, of account: Account, for scope: ShelfScope, removeTitle: String? = nil, language: String? = nil
    ) {
        self.account = account
        (app, everyApp) = (scope.app, scope.everyApp)
        self.url = url
        self.removeTitle = removeTitle
        self.language = language
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        try check(removeTitle, "removeTitle")
        try checkLanguage(language)
        let language = Language.of(language)
        if let removeTitle, !language.saysRemove(removeTitle) {
            throw ServiceError(
                .malformedRequest,
                "removeTitle does not contain the word “\(language.attribution.remove)”, in any of its forms")
        }
        let view = try ShelfView(account, try ShelfScope(app: app, everyApp: everyApp), context, records)
        let shares = try records.shares(of: url, view, context)
        let told = try attributions(of: shares, limit: Limits.attributionsPerItemMax, view)
        let replies = told.map { attribution in
            AttributionDetails.MenuAction(
                kind: .reply, title: language.reply(to: attribution.nameToReplyTo),
                handle: attribution.handle, conversation: attribution.conversation?.identifier)
        }
        let remove = AttributionDetails.MenuAction(
            kind: .remove, title: removeTitle ?? language.attribution.remove, handle: nil, conversation: nil)
        var summary: String?
        if view.scope == .everyApp {
            let names = try attributions(of: shares, limit: .max, view).compactMap(\.sharer?.name)
            summary = language.summary(from: distinct(names.filter { !$0.isBlank }))
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

extension Attribution {
    /// The conversation's name, or else the sharer's. A blank name is as none.
    fileprivate var nameToReplyTo: String? {
        [conversation?.name, sharer?.name].lazy.compactMap { $0 }.first { !$0.isBlank }
    }
}

/// Each sharer once, the latest first.
private func distinct(_ sharers: [String]) -> [String] {
    var names: [String] = []
    for name in sharers where !names.contains(name) { names.append(name) }
    return names
}
