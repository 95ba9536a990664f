package import Core
public import Foundation

/// Hides an item from a person's shelf permanently, even when it is shared again. With `everyApp` the item need not be
/// on the shelf: it suffices that it was shared with the person. An app can remove only what it sees. Repeating the
/// request changes nothing.
public struct RemoveHighlight: RuledRequest {
    public static let name = "removeHighlight"
    public typealias Answer = ChangeReceipt

    public var account: Account
    /// The app in which it is removed; see `ShelfScope`.
    public var app: String?
    public var everyApp: Bool?
    public var url: URL

    public init(_ url: URL, of account: Account, for scope: ShelfScope) {
        self.account = account
        (app, everyApp) = (scope.app, scope.everyApp)
        self.url = url
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        let view = try ShelfView(account, try ShelfScope(app: app, everyApp: everyApp), context, records)
        let item = ShelfKeys.item(url, context)
        // An app removes only what it sees, so that it does not learn what else was shared.
        let known = try records.shareHeads(of: item, account, isRemoval: true) { head, conversation in
            view.scope == .everyApp || view.shows(head, in: conversation)
        }
        guard !known.isEmpty else { throw view.unknown(url) }
        guard try !records.isHidden(item, from: account, isRemoval: true) else {
            return .noted(nil, [.checking(ShelfKeys(account).signals(item), expecting: .present)])
        }
        if view.scope != .everyApp { _ = try records.shares(of: url, view, context, isRemoval: true) }
        return try .noting(item, account, isRemoval: true, records) { $0.isHidden = true }
    }
}
