import Core
import Foundation

extension Decision<ChangeReceipt> {
    /// Changes the signals of a person about an item, of which it is known that the person may.
    static func noting(
        _ item: [UInt8], _ account: Account, _ records: borrowing some RecordReader & ~Copyable,
        _ change: (inout Signals) -> Void
    ) throws(ServiceError) -> Decision {
        let key = ShelfKeys(account).signals(item)
        let known = try records.record(key)
        var signals = known?.value.withRawBytes { Signals($0) } ?? Signals()
        change(&signals)
        var edit = Edit()
        edit.records = [
            RecordEdit(key, value: signals.bytes, expecting: known.map { .version($0.version) } ?? .absent),
            // Every share writes this record, and replacing it needs no space.
            RecordEdit(RecordKeys.shelf(account), value: [], expecting: .present),
        ]
        return .change(edit, topics: [.shelf(account)], count: 1)
    }
}
