import Core

/// How every request that carries a batch begins: verify, inclusion-only verify, open and check grants.
///
///     at least sequence (8)  flags (1)  zero (1)  collaborations (2)  items (4)
///     each collaboration: length (1), identifier
///
/// The items follow. This type writes and reads the first 16 bytes and writes the identifiers; each batch reads them
/// its own way.
package struct BatchHead {
    package static let byteCount = 16

    /// The sequence of a change that must have been applied to what the service reads; 0 demands nothing.
    let atLeast: UInt64
    let flags: UInt8
    /// At most `Limits.collaborationsPerRequestMax`.
    let collaborationCount: Int
    /// At most the limit that `init` was given.
    let itemCount: Int

    /// Reads the first 16 bytes. `flags` are those that the request may have; `items` names what it carries.
    ///
    /// Throws `malformedRequest` when the body is shorter or a reserved bit is set, `limitExceeded`.
    @inline(__always)
    init(_ reader: inout ByteReader, flags known: UInt8, itemsMax: Int, _ items: String) throws(ServiceError) {
        guard let atLeast: UInt64 = reader.integer(), let flags = reader.byte(), let zero = reader.byte(),
            let collaborationCount: UInt16 = reader.integer(), let itemCount: UInt32 = reader.integer()
        else { throw malformedRequest("the body ends inside its first \(BatchHead.byteCount) bytes") }
        guard flags & ~known == 0, zero == 0 else { throw malformedRequest("a reserved bit is set") }
        try checkLimit(Int(collaborationCount), Limits.collaborationsPerRequestMax, "collaborations")
        try checkLimit(Int(itemCount), itemsMax, items)
        self.atLeast = atLeast
        self.flags = flags
        self.collaborationCount = Int(collaborationCount)
        self.itemCount = Int(itemCount)
    }

    /// Appends the first 16 bytes and the collaborations.
    ///
    /// Throws `limitExceeded`.
    static func append(
        atLeast: UInt64, flags: UInt8 = 0, _ collaborations: [CollaborationIdentifier], itemCount: Int, itemsMax: Int,
        _ items: String, to bytes: inout [UInt8]
    ) throws(ServiceError) {
        try checkLimit(collaborations.count, Limits.collaborationsPerRequestMax, "collaborations")
        try checkLimit(itemCount, itemsMax, items)
        bytes.appendInteger(atLeast)
        bytes.append(flags)
        bytes.append(0)
        bytes.appendInteger(UInt16(collaborations.count))
        bytes.appendInteger(UInt32(itemCount))
        for collaboration in collaborations { bytes.appendShortBytes(collaboration.utf8) }
    }
}
