/// Version of the protocol that this package speaks.
package let protocolVersion: UInt8 = 1

/// The 16 bytes before every body:
///
///     0  body length (4)   4  version (1)   5  kind (1)   6  operation (2)   8  request id (8)
package struct FrameHeader: Equatable, Sendable {
    package var bodyLength: Int
    package var kind: FrameKind
    /// An `Operation`, unchecked: frames behind a request with an unknown operation can still be read.
    package var operation: UInt16
    package var requestID: UInt64

    package init(bodyLength: Int = 0, kind: FrameKind, operation: UInt16, requestID: UInt64) {
        self.bodyLength = bodyLength
        self.kind = kind
        self.operation = operation
        self.requestID = requestID
    }

    func append(to bytes: inout [UInt8]) {
        bytes.appendInteger(UInt32(bodyLength))
        bytes.append(protocolVersion)
        bytes.append(kind.rawValue)
        bytes.appendInteger(operation)
        bytes.appendInteger(requestID)
    }
}
