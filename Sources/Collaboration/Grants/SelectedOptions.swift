package import Core

/// The identifiers of a collaboration's selected share options, as checks of grants report them. The record `d`:
///
///     count (2)  each: length (2), identifier
///
/// It is written whenever the selection changes. Unlike the records `a` and `b` it revokes nothing.
package enum SelectedOptions {
    /// The key of the record.
    package static func key(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        RecordKeys.selection(collaboration)
    }

    /// What stands for a collaboration without the record: no identifiers.
    package static let none: [UInt8] = [0, 0]

    /// The record's value.
    static func value(_ identifiers: [String]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendInteger(UInt16(identifiers.count))
        for identifier in identifiers {
            bytes.appendInteger(UInt16(identifier.utf8.count))
            bytes += Array(identifier.utf8)
        }
        return bytes
    }
}
