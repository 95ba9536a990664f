import Core
import Foundation

extension Decision<ChangeReceipt> {
    /// Changes the signals of a person about an item.
    static func noting(
        _ url: URL, _ account: Account, _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable,
        _ change: (inout Signals) -> Void
    ) throws(ServiceError) -> Decision {
        _ = try records.shares(of: url, account, context)
        let key = ShelfKeys(account).signals(ShelfKeys.item(url, context))
        let known = try records.record(key)
        var signals = known?.value.withRawBytes { Signals($0) } ?? Signals()
        change(&signals)
        signals.lastMilliseconds = context.milliseconds(of: context.now)
        var edit = Edit()
        edit.records = [
            RecordEdit(key, value: signals.bytes, expecting: known.map { .version($0.version) } ?? .absent),
            RecordEdit(RecordKeys.shelf(account), value: []),
        ]
        return .change(edit, topics: [.shelf(account)], count: 1)
    }
}
