package import Core

/// Asks a service of a cluster for a piece of a snapshot of everything that it has stored.
package struct SnapshotRequest: Equatable, Sendable {
    package static let tokenBytes = 32

    /// The HMAC-SHA256 of the asked service's number, 8 bytes in little endian, under the key for snapshots that comes
    /// from the cluster's secret: proof that the asker has that secret.
    package var token: [UInt8]
    /// The snapshot's number; 0: a new one is wanted, or the one that there is.
    package var identifier: UInt64
    /// Where the piece begins.
    package var offset: UInt64

    package init(token: [UInt8], identifier: UInt64, offset: UInt64) {
        precondition(token.count == SnapshotRequest.tokenBytes, "a token has another length")
        (self.token, self.identifier, self.offset) = (token, identifier, offset)
    }

    /// Returns `nil` when the bytes end early.
    init?(_ reader: inout ByteReader) {
        guard let token = reader.bytes(SnapshotRequest.tokenBytes), let identifier: UInt64 = reader.integer(),
            let offset: UInt64 = reader.integer()
        else { return nil }
        self.init(token: Array(token), identifier: identifier, offset: offset)
    }

    func append(to bytes: inout [UInt8]) {
        bytes += token
        bytes.appendInteger(identifier)
        bytes.appendInteger(offset)
    }
}

/// A piece of a snapshot.
package struct SnapshotPiece: Equatable, Sendable {
    package let identifier: UInt64
    /// Bytes of the whole snapshot.
    package let size: UInt64
    /// What begins where it was asked for; empty at the end.
    package let bytes: [UInt8]

    package init(identifier: UInt64, size: UInt64, bytes: [UInt8]) {
        (self.identifier, self.size, self.bytes) = (identifier, size, bytes)
    }

    /// Throws `malformedAnswer`.
    package init(_ body: UnsafeRawBufferPointer) throws(ServiceError) {
        var reader = ByteReader(body)
        guard let identifier: UInt64 = reader.integer(), let size: UInt64 = reader.integer(),
            let bytes = reader.bytes(body.count - 16), identifier > 0
        else { throw malformedAnswer }
        self.init(identifier: identifier, size: size, bytes: Array(bytes))
    }

    package func append(to body: inout [UInt8]) {
        body.appendInteger(identifier)
        body.appendInteger(size)
        body += bytes
    }
}
