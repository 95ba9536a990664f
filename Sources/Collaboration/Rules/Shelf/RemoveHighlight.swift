package import Core
public import Foundation

/// Hides an item from a person's shelf permanently, even when it is shared again. Repeating the request changes
/// nothing.
public struct RemoveHighlight: RuledRequest {
    public static let name = "removeHighlight"
    public typealias Answer = ChangeReceipt

    public var account: Account
    public var url: URL

    public init(_ url: URL, of account: Account) {
        self.account = account
        self.url = url
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLink(url, "url")
        guard try !records.isHidden(ShelfKeys.item(url, context), from: account) else {
            return .unchanged
        }
        return try .noting(url, account, context, records) { $0.isHidden = true }
    }
}
