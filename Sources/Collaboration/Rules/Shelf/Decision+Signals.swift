import Core
import Foundation

extension Decision<ChangeReceipt> {
    /// Changes the signals of a person about an item, of which it is known that the person may. `isRemoval`: signals
    /// that can't be read are replaced.
    ///
    /// Throws `storageDamaged` when they can't be read: replacing them could bring back what was removed.
    static func noting(
        _ item: [UInt8], _ account: Account, isRemoval: Bool = false,
        _ records: borrowing some RecordReader & ~Copyable, _ change: (inout Signals) -> Void
    ) throws(ServiceError) -> Decision {
        let key = ShelfKeys(account).signals(item)
        let known = try records.signals(of: item, account, isRemoval: isRemoval)
        var signals = known?.value ?? Signals()
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
