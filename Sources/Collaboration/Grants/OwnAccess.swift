package import Core

/// What a collaboration has decided about one participant. The record `a`: two bytes, the permission (0: the
/// collaboration's default) and the role. A person without this record may do nothing.
package struct OwnAccess: Hashable, Sendable {
    /// `nil`: the collaboration's default.
    let permission: Permission?
    let role: ParticipantRole
    /// The sequence of the mutation that wrote the record.
    let version: UInt64

    /// Reads the record without allocating; `nil` when it is damaged.
    package init?(version: UInt64, value: UnsafeRawBufferPointer) {
        guard value.count == 2, let role = ParticipantRole(code: value[1]) else { return nil }
        let permission = Permission(code: value[0])
        guard permission != nil || value[0] == 0 else { return nil }
        self.permission = permission
        self.role = role
        self.version = version
    }

    /// `nil` when there is no record.
    ///
    /// Throws `storageDamaged` when it is damaged.
    package init?(_ record: StoredRecord?) throws(ServiceError) {
        guard let record else { return nil }
        guard let read = record.value.withRawBytes({ OwnAccess(version: record.version, value: $0) }) else {
            throw OwnAccess.damaged
        }
        self = read
    }

    /// The error for a record that can't be read: nobody knows what it has said of the participant.
    package static var damaged: ServiceError {
        ServiceError(.storageDamaged, "the record of a participant's access is damaged")
    }

    /// The key of the record. It ends with the 32 bytes of the person's root hash.
    package static func key(_ collaboration: CollaborationIdentifier, _ person: PersonIdentity) -> [UInt8] {
        RecordKeys.access(collaboration, person)
    }

    /// The record's value.
    static func value(role: ParticipantRole, permission: Permission?) -> [UInt8] {
        [permission?.code ?? 0, role.code]
    }
}
