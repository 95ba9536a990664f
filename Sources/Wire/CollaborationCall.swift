package import Core

/// A request of the collaboration layer:
///
///     mutation identifier (16)  length (1), name  the rest: a JSON object
///
/// Its answer is a JSON value.
package struct CollaborationCall: Sendable {
    /// Makes repeating the request harmless, when it changes something.
    package let identifier: MutationIdentifier
    package let name: String
    package let json: [UInt8]

    package init(identifier: MutationIdentifier, name: String, json: [UInt8]) {
        self.identifier = identifier
        self.name = name
        self.json = json
    }

    package func append(to bytes: inout [UInt8]) {
        bytes.appendInteger(identifier.value)
        bytes.appendShortBytes(name.utf8)
        bytes.append(contentsOf: json)
    }

    /// The UTF-8 bytes of the name in the first bytes of a body; `nil` when they end before the name does.
    package static func name(in body: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var reader = ByteReader(body)
        guard let _: UInt128 = reader.integer() else { return nil }
        return reader.shortBytes()
    }

    /// Throws `malformedRequest` or `limitExceeded`.
    init(_ reader: inout ByteReader, bodyBytes: Int) throws(ServiceError) {
        guard let identifier: UInt128 = reader.integer(), let name = reader.shortBytes() else {
            throw malformedRequest("the body is too short")
        }
        try checkLimit(name.count, Limits.requestNameBytesMax, "bytes of a name")
        let count = bodyBytes - reader.offset
        try checkLimit(count, Limits.collaborationRequestBytesMax, "bytes of JSON")
        guard let name = String(validating: name, as: UTF8.self), let json = reader.bytes(count) else {
            throw malformedRequest("the request's name is not UTF-8")
        }
        self.init(identifier: MutationIdentifier(identifier), name: name, json: Array(json))
    }
}

/// Grants to be checked:
///
///     a `BatchHead`, with flag 2 when the answer shall carry the selected share options
///     each grant: collaboration's position (2), flags (1: 1 of this device), zero (1), device key (16), grant (112)
///
/// The device key is the first 16 bytes of the SHA-256 of the key as the device sends it; without the flag it is zero.
package struct GrantBatch: Sendable {
    /// A grant, the position of the collaboration that it is to be checked for, and the device that shows it, if that
    /// is to be checked.
    package struct Entry: Sendable {
        package let collaboration: Int
        package let deviceKey: [UInt8]?
        package let grant: [UInt8]

        package init(collaboration: Int, deviceKey: [UInt8]?, grant: [UInt8]) {
            self.collaboration = collaboration
            self.deviceKey = deviceKey
            self.grant = grant
        }
    }

    private static let entryBytes = 4 + Limits.fingerprintBytes + Limits.grantBytes

    /// The sequence of a change that must have been applied to what the service reads; 0 demands nothing.
    package let atLeast: UInt64
    /// Whether the answer carries the collaborations' selected share options.
    package let wantsOptions: Bool
    package let collaborations: [CollaborationIdentifier]
    /// The entries as they came.
    private let entries: [UInt8]

    package var count: Int { entries.count / GrantBatch.entryBytes }

    /// Throws `malformedRequest` or `limitExceeded`.
    init(_ reader: inout ByteReader) throws(ServiceError) {
        let head = try BatchHead(&reader, flags: OptionLists.flag, itemsMax: Limits.grantsPerCheckMax, "grants")
        atLeast = head.atLeast
        wantsOptions = head.flags & OptionLists.flag != 0
        var collaborations: [CollaborationIdentifier] = []
        for _ in 0..<head.collaborationCount { collaborations.append(try Request.readCollaboration(&reader)) }
        guard let block = reader.bytes(head.itemCount * GrantBatch.entryBytes) else {
            throw malformedRequest("the body ends inside a grant")
        }
        for start in stride(from: 0, to: block.count, by: GrantBatch.entryBytes) {
            let position = Int(UInt16(littleEndian: block.loadUnaligned(fromByteOffset: start, as: UInt16.self)))
            let flags = block[start + 2]
            let deviceKey = block[start + 4..<start + 4 + Limits.fingerprintBytes]
            guard position < collaborations.count, flags <= 1, block[start + 3] == 0,
                flags == 1 || deviceKey.allSatisfy({ $0 == 0 })
            else {
                throw malformedRequest("a grant names no collaboration, or a reserved bit is set")
            }
        }
        self.collaborations = collaborations
        entries = Array(block)
    }

    /// One entry, in the bytes with which `withBytes` calls its body.
    package struct BorrowedEntry {
        /// The position of the collaboration that the grant is shown for.
        package let collaboration: Int
        /// The device that shows the grant, 16 bytes; `nil`: not to be checked.
        package let deviceKey: UnsafeRawPointer?
        package let grant: UnsafeRawBufferPointer
    }

    /// Calls `body` with the bytes of all entries. `body` must not keep them.
    package func withBytes<R, E>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try entries.withRawBytes(body)
    }

    /// The entry at `index`. `bytes`: those with which `withBytes` calls its body.
    package static func entry(_ index: Int, in bytes: UnsafeRawBufferPointer) -> BorrowedEntry {
        let entry = UnsafeRawBufferPointer(rebasing: bytes[index * entryBytes..<(index + 1) * entryBytes])
        return BorrowedEntry(
            collaboration: Int(UInt16(littleEndian: entry.loadUnaligned(fromByteOffset: 0, as: UInt16.self))),
            deviceKey: entry[2] & 1 == 1 ? entry.baseAddress.map { $0 + 4 } : nil,
            grant: UnsafeRawBufferPointer(rebasing: entry[(4 + Limits.fingerprintBytes)...]))
    }

    /// The offset of a grant in the bytes with which `withBytes` calls its body.
    package static func grantOffset(_ index: Int) -> Int { index * entryBytes + 4 + Limits.fingerprintBytes }

    /// Appends the body of a request.
    ///
    /// Throws `limitExceeded`.
    package static func append(
        _ entries: [Entry], of collaborations: [CollaborationIdentifier], wantsOptions: Bool = false, atLeast: UInt64,
        to bytes: inout [UInt8]
    ) throws(ServiceError) {
        try BatchHead.append(
            atLeast: atLeast, flags: wantsOptions ? OptionLists.flag : 0, collaborations, itemCount: entries.count,
            itemsMax: Limits.grantsPerCheckMax, "grants", to: &bytes)
        for entry in entries {
            bytes.appendInteger(UInt16(entry.collaboration))
            bytes.append(entry.deviceKey == nil ? 0 : 1)
            bytes.append(0)
            bytes.append(contentsOf: entry.deviceKey ?? [UInt8](repeating: 0, count: Limits.fingerprintBytes))
            bytes.append(contentsOf: entry.grant)
        }
    }
}

/// The result of checking one grant: status (1), permission (1), role (1), zero (1), milliseconds left (4).
package struct GrantAnswer: Equatable, Sendable {
    package static let byteCount = 8

    package let status: UInt8
    /// Zero when the grant is refused; so are the following fields.
    package let permission: UInt8
    package let role: UInt8
    package let millisecondsLeft: UInt32

    package init(status: UInt8, permission: UInt8 = 0, role: UInt8 = 0, millisecondsLeft: UInt32 = 0) {
        self.status = status
        self.permission = permission
        self.role = role
        self.millisecondsLeft = millisecondsLeft
    }

    package func append(to bytes: inout [UInt8]) {
        bytes.append(status)
        bytes.append(permission)
        bytes.append(role)
        bytes.append(0)
        bytes.appendInteger(millisecondsLeft)
    }

    /// Reads a check's answer: count (4), zero (4), the results, and the selected options of so many collaborations
    /// (0 when they were not asked for).
    ///
    /// Throws `malformedAnswer`.
    package static func decode(
        _ body: UnsafeRawBufferPointer, optionLists: Int = 0
    ) throws(ServiceError) -> (answers: [GrantAnswer], options: [[String]]) {
        var reader = ByteReader(body)
        guard let count: UInt32 = reader.integer(), reader.bytes(4) != nil,
            body.count >= 8 + Int(count) * byteCount
        else { throw malformedAnswer }
        var answers: [GrantAnswer] = []
        for _ in 0..<count {
            guard let status = reader.byte(), let permission = reader.byte(), let role = reader.byte(),
                reader.byte() != nil, let left: UInt32 = reader.integer()
            else { throw malformedAnswer }
            answers.append(GrantAnswer(status: status, permission: permission, role: role, millisecondsLeft: left))
        }
        return (answers, try OptionLists.decode(&reader, count: optionLists))
    }
}

/// The answer to an open request: that of verify, followed by a grant for each proof (112 bytes, zeros where there is
/// none), and by the selected options when they were asked for.
package enum OpenAnswer {
    /// `count`: of proofs; `optionLists`: of collaborations, 0 when options were not asked for.
    ///
    /// Throws `malformedAnswer`.
    package static func decode(
        _ body: UnsafeRawBufferPointer, count: Int, optionLists: Int = 0
    ) throws(ServiceError) -> (verdicts: [Verdict], grants: [[UInt8]?], options: [[String]]) {
        guard body.count >= VerdictList.headBytes else { throw malformedAnswer }
        let grantsStart = VerdictList.byteCount(count, hasRoots: body[4] & 1 != 0)
        let grantsEnd = grantsStart + count * Limits.grantBytes
        guard body.count >= grantsEnd else { throw malformedAnswer }
        let (verdicts, _) = try VerdictList.decode(UnsafeRawBufferPointer(rebasing: body[..<grantsStart]))
        guard verdicts.count == count else { throw malformedAnswer }
        let grants = (0..<count).map { index -> [UInt8]? in
            let start = grantsStart + index * Limits.grantBytes
            let bytes = body[start..<start + Limits.grantBytes]
            return bytes.allSatisfy { $0 == 0 } ? nil : Array(bytes)
        }
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: body[grantsEnd...]))
        return (verdicts, grants, try OptionLists.decode(&reader, count: optionLists))
    }
}
