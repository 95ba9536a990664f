package import Core

/// What a grant says, before anybody has looked whether it is genuine.
package struct GrantClaim: Hashable, Sendable {
    package var permission: Permission
    package var role: ParticipantRole
    package var expiry: UInt64
    package var sequence: UInt64
    package var collaboration: [UInt8]
    package var deviceKey: [UInt8]
    package var rootHash: Digest

    package init(
        permission: Permission, role: ParticipantRole, expiry: UInt64, sequence: UInt64, collaboration: [UInt8],
        deviceKey: [UInt8], rootHash: Digest
    ) {
        self.permission = permission
        self.role = role
        self.expiry = expiry
        self.sequence = sequence
        self.collaboration = collaboration
        self.deviceKey = deviceKey
        self.rootHash = rootHash
    }

    /// Reads the signed part of a grant; `nil` when it is none of this version.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard reader.byte() == 1, let permission = reader.byte().flatMap(Permission.init(code:)),
            let role = reader.byte().flatMap(ParticipantRole.init(code:)),
            reader.bytes(5)?.allSatisfy({ $0 == 0 }) == true,
            let expiry: UInt64 = reader.integer(), let sequence: UInt64 = reader.integer(),
            let collaboration = reader.bytes(AccessGrant.fingerprintBytes),
            let deviceKey = reader.bytes(AccessGrant.fingerprintBytes), let rootHash = reader.digest()
        else { return nil }
        self.init(
            permission: permission, role: role, expiry: expiry, sequence: sequence,
            collaboration: Array(collaboration), deviceKey: Array(deviceKey), rootHash: rootHash)
    }

    /// Appends the signed part of the grant.
    package func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: [1, permission.code, role.code, 0, 0, 0, 0, 0])
        bytes.appendInteger(expiry)
        bytes.appendInteger(sequence)
        bytes.append(contentsOf: collaboration)
        bytes.append(contentsOf: deviceKey)
        bytes.appendDigests([rootHash])
    }
}
