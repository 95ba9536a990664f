package import Core
public import Foundation

/// Records that a person viewed or used an item, or how it was shown. The suggestion is computed from these signals.
public struct SignalHighlight: RuledRequest {
    public static let name = "signalHighlight"
    public typealias Answer = ChangeReceipt

    public var account: Account
    public var url: URL
    public var signal: HighlightSignal
    /// With `shown`: how the item was shown. Being shown in detail counts twice.
    public var context: DisplayContext?

    public init(_ signal: HighlightSignal, _ url: URL, of account: Account, context: DisplayContext? = nil) {
        self.account = account
        self.url = url
        self.signal = signal
        self.context = context
    }

    package func decide(
        _ ruleContext: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        return try .noting(url, account, ruleContext, records) { signals in
            switch signal {
            case .viewed: signals.views = signals.views &+ 1
            case .interacted: signals.interactions = signals.interactions &+ 1
            case .shown: signals.shown = signals.shown &+ (context == .detail ? 2 : 1)
            }
        }
    }
}
