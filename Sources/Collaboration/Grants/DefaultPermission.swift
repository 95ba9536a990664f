package import Core

/// What a participant without a permission of his own may do in a collaboration, by its share options. The record `b`:
/// one byte, the permission.
package struct DefaultPermission: Hashable, Sendable {
    let permission: Permission
    /// The sequence of the mutation that wrote the record.
    let version: UInt64

    /// Reads the record; `nil` when it is damaged.
    init?(version: UInt64, value: UnsafeRawBufferPointer) {
        guard value.count == 1, let permission = Permission(code: value[0]) else { return nil }
        self.permission = permission
        self.version = version
    }

    /// `nil` when there is no record.
    ///
    /// Throws `storageDamaged` when it is damaged.
    package init?(_ record: StoredRecord?) throws(ServiceError) {
        guard let record else { return nil }
        guard let read = record.value.withRawBytes({ DefaultPermission(version: record.version, value: $0) }) else {
            throw ServiceError(.storageDamaged, "the record of a collaboration's default permission is damaged")
        }
        self = read
    }

    /// The key of the record.
    package static func key(_ collaboration: CollaborationIdentifier) -> [UInt8] {
        RecordKeys.defaultPermission(collaboration)
    }

    /// The record's value.
    static func value(_ permission: Permission) -> [UInt8] { [permission.code] }
}
