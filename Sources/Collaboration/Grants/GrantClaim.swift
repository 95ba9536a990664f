package import Core

/// The signed fields of a grant. Reading them tells nothing about whether the grant is genuine.
package struct GrantClaim: Hashable, Sendable {
    package let permission: Permission
    package let role: ParticipantRole
    /// The last millisecond of the service's durable clock at which the grant is valid.
    package let expiry: UInt64
    /// The sequence of the change log at which the grant was issued.
    package let sequence: UInt64
    package let collaboration: Fingerprint
    package let deviceKey: Fingerprint
    package let rootHash: Digest

    package init(
        permission: Permission, role: ParticipantRole, expiry: UInt64, sequence: UInt64, collaboration: Fingerprint,
        deviceKey: Fingerprint, rootHash: Digest
    ) {
        self.permission = permission
        self.role = role
        self.expiry = expiry
        self.sequence = sequence
        self.collaboration = collaboration
        self.deviceKey = deviceKey
        self.rootHash = rootHash
    }

    /// Reads the signed bytes of a grant without allocating; `nil` when they are too few or not of this version.
    package init?(_ grant: UnsafeRawBufferPointer) {
        guard grant.count >= GrantLayout.tag, let start = grant.baseAddress,
            grant[GrantLayout.version] == GrantLayout.currentVersion,
            let permission = Permission(code: grant[GrantLayout.permission]),
            let role = ParticipantRole(code: grant[GrantLayout.role]),
            grant[GrantLayout.reserved..<GrantLayout.expiry].allSatisfy({ $0 == 0 })
        else { return nil }
        func number(at offset: Int) -> UInt64 {
            UInt64(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        self.init(
            permission: permission, role: role, expiry: number(at: GrantLayout.expiry),
            sequence: number(at: GrantLayout.sequence),
            collaboration: Fingerprint(at: start + GrantLayout.collaboration),
            deviceKey: Fingerprint(at: start + GrantLayout.deviceKey),
            rootHash: Digest(at: start + GrantLayout.rootHash))
    }

    /// Appends the signed bytes of the grant.
    package func append(to bytes: inout [UInt8]) {
        let start = bytes.count
        bytes += [GrantLayout.currentVersion, permission.code, role.code]
        bytes += repeatElement(0, count: GrantLayout.expiry - GrantLayout.reserved)
        bytes.appendInteger(expiry)
        bytes.appendInteger(sequence)
        collaboration.append(to: &bytes)
        deviceKey.append(to: &bytes)
        bytes.appendDigests([rootHash])
        precondition(bytes.count - start == GrantLayout.tag, "a grant is not as long as its layout")
    }
}
