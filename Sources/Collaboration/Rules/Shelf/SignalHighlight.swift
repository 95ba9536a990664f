package import Core
public import Foundation

/// Records that a person viewed or used an item of the shelf, or how it was shown. The suggestion is computed from
/// these signals.
public struct SignalHighlight: RuledRequest {
    public static let name = "signalHighlight"
    public typealias Answer = ChangeReceipt

    public var account: Account
    /// The app that signals; see `ShelfScope`.
    public var app: String?
    public var everyApp: Bool?
    public var url: URL
    public var signal: HighlightSignal
    /// With `shown`: how the item was shown. Being shown in detail counts twice.
    public var context: DisplayContext?

    public init(
        _ signal: HighlightSignal, _ url: URL, of account: Account, for scope: ShelfScope,
        context: DisplayContext? = nil
    ) {
        self.account = account
        (app, everyApp) = (scope.app, scope.everyApp)
        self.url = url
        self.signal = signal
        self.context = context
    }

    package func decide(
        _ ruleContext: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        let view = try ShelfView(account, try ShelfScope(app: app, everyApp: everyApp), ruleContext, records)
        _ = try records.shares(of: url, view, ruleContext)
        let now = ruleContext.milliseconds(of: ruleContext.now)
        return try .noting(ShelfKeys.item(url, ruleContext), account, records) { signals in
            signals.note(signal, context, at: now)
        }
    }
}
