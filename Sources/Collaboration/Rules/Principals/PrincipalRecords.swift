package import Core
import Foundation
package import Principals

/// The records of principals, for the service, which keeps all principals in memory.
package enum PrincipalRecords {
    /// All principals of a snapshot.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package static func directory(
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> PrincipalDirectory {
        PrincipalDirectory(
            try records.principals().map(\.value),
            isConfigured: try records.record(RecordKeys.principalCount) != nil)
    }

    /// Whether the edit may change principals.
    package static func areChanged(by edit: Edit) -> Bool {
        edit.records.contains { $0.key == RecordKeys.principalCount }
    }

    /// What an edit does to principals and keys, in one line for an audit.
    package static func summary(of edit: Edit) -> String {
        let principal = RecordKeys.principals.start
        let uses = RecordKeys.principalUseStart
        return edit.records.compactMap { record -> String? in
            let key = record.key
            if key.starts(with: principal) {
                let name = String(decoding: key.dropFirst(principal.count), as: UTF8.self)
                let isNew = record.expectation == .absent
                return "\(name) \(record.value == nil ? "removed" : isNew ? "created" : "changed")"
            }
            guard key.starts(with: uses), let end = key.lastIndex(of: 0), end + 1 < key.count else { return nil }
            let identifier = String(decoding: key[(end + 1)...], as: UTF8.self)
            return "key \(identifier) \(record.value == nil ? "removed" : "added")"
        }.joined(separator: ", ")
    }

    /// When the key was last used, or without a key the principal, in milliseconds; 0: never.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    package static func lastUse(
        of name: PrincipalName, _ key: KeyIdentifier?, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> UInt64 {
        try records.record(RecordKeys.principalUse(name, key))?.number() ?? 0
    }

    /// Notes that the key, or without a key the principal, was used then. The edit is stale when it was removed.
    package static func use(of name: PrincipalName, _ key: KeyIdentifier?, milliseconds: UInt64) -> Edit {
        var edit = Edit()
        edit.records = [
            RecordEdit(
                RecordKeys.principalUse(name, key), value: bigEndianBytes(milliseconds), expecting: .present)
        ]
        return edit
    }
}
