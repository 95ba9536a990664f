package import Core

/// Version of the protocol that this package speaks.
package let protocolVersion: UInt8 = 1

/// What a frame is.
package enum FrameKind: UInt8, Sendable {
    case request = 1
    case answer = 2
    case error = 3
}

/// The operations; an answer carries the operation of its request.
package enum Operation: UInt16, CaseIterable, Sendable {
    case hello = 0x01
    case ping = 0x02
    case issueChallenges = 0x03
    case verify = 0x10
    case verifyInclusion = 0x11
    case addRoots = 0x20
    case removeRoots = 0x21
    case testRoots = 0x22
    case listRoots = 0x23
    case countRoots = 0x24
    case createCollaboration = 0x30
    case dropCollaboration = 0x31
    case listCollaborations = 0x32
    /// Only in the change log.
    case edit = 0x33
    case statistics = 0x40
    case readChanges = 0x41
    /// A request of the collaboration layer, as JSON.
    case collaborate = 0x80
    case open = 0x81
    case checkGrants = 0x82
}

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

/// The result of looking for a frame at the beginning of received bytes.
package enum FrameScan: Equatable, Sendable {
    /// Not yet a whole frame; it will have this many bytes, header included (16 while that is unknown).
    case incomplete(frameBytes: Int)
    /// A whole frame: its body is the `bodyLength` bytes behind the header.
    case frame(FrameHeader)
    /// No next frame can be found: answer with the error under this request id, then close.
    case violation(ServiceError, requestID: UInt64)
}

/// Finds a frame at the beginning of received bytes. Pure: no I/O, no state. A header is checked as
/// soon as it is there, before memory is reserved for the body. `FrameReader` reads frame after frame.
package enum FrameScanner {
    /// The header at the beginning of a frame that `scan` found incomplete; `nil` when it has not arrived as a whole.
    package static func header(ofIncomplete bytes: UnsafeRawBufferPointer) -> FrameHeader? {
        var reader = ByteReader(bytes)
        guard let length: UInt32 = reader.integer(), reader.byte() != nil, let kindByte = reader.byte(),
            let kind = FrameKind(rawValue: kindByte), let operation: UInt16 = reader.integer(),
            let requestID: UInt64 = reader.integer()
        else { return nil }
        return FrameHeader(bodyLength: Int(length), kind: kind, operation: operation, requestID: requestID)
    }

    package static func scan(_ bytes: UnsafeRawBufferPointer, expecting kinds: [FrameKind]) -> FrameScan {
        guard bytes.count >= Limits.frameHeaderBytes else { return .incomplete(frameBytes: Limits.frameHeaderBytes) }
        var reader = ByteReader(bytes)
        guard let length: UInt32 = reader.integer(), let version = reader.byte(), let kindByte = reader.byte(),
            let operation: UInt16 = reader.integer(), let requestID: UInt64 = reader.integer()
        else { return .incomplete(frameBytes: Limits.frameHeaderBytes) }
        guard version == protocolVersion else {
            return .violation(
                ServiceError(
                    .unsupportedVersion, detail: UInt32(protocolVersion),
                    "version \(version) is not spoken here, version \(protocolVersion) is"),
                requestID: requestID)
        }
        guard let kind = FrameKind(rawValue: kindByte), kinds.contains(kind) else {
            return .violation(
                ServiceError(.malformedFrame, "a frame of kind \(kindByte) was not expected"),
                requestID: requestID)
        }
        guard length <= Limits.frameBodyBytesMax else {
            return .violation(
                ServiceError(
                    .frameTooLarge, detail: UInt32(Limits.frameBodyBytesMax),
                    "a body of \(length) bytes is over the limit of \(Limits.frameBodyBytesMax)"),
                requestID: requestID)
        }
        let frameBytes = Limits.frameHeaderBytes + Int(length)
        guard bytes.count >= frameBytes else { return .incomplete(frameBytes: frameBytes) }
        return .frame(FrameHeader(bodyLength: Int(length), kind: kind, operation: operation, requestID: requestID))
    }
}

/// Makes frames.
package enum FrameWriter {
    /// Appends a frame whose body is what `body` appends.
    package static func append(
        _ kind: FrameKind, _ operation: UInt16, requestID: UInt64, to bytes: inout [UInt8],
        body: (inout [UInt8]) -> Void = { _ in }
    ) {
        let start = bytes.count
        FrameHeader(kind: kind, operation: operation, requestID: requestID).append(to: &bytes)
        body(&bytes)
        let length = UInt32(bytes.count - start - Limits.frameHeaderBytes)
        withUnsafeBytes(of: length.littleEndian) { source in
            for index in 0..<4 { bytes[start + index] = source[index] }
        }
    }

    /// Appends an error answer: code (2), text length (2), detail (4), text.
    package static func appendError(
        _ error: ServiceError, operation: UInt16, requestID: UInt64, to bytes: inout [UInt8]
    ) {
        append(.error, operation, requestID: requestID, to: &bytes) { bytes in
            let text = Array(error.reason.utf8)
            bytes.appendInteger(error.code.rawValue)
            bytes.appendInteger(UInt16(text.count))
            bytes.appendInteger(error.detail)
            bytes.append(contentsOf: text)
        }
    }

    /// The error in the body of an error answer, marked as the service's.
    ///
    /// Throws `malformedAnswer` when it is none.
    package static func decodeError(_ body: UnsafeRawBufferPointer) throws(ServiceError) -> ServiceError {
        var reader = ByteReader(body)
        guard let code: UInt16 = reader.integer(), let length: UInt16 = reader.integer(),
            let detail: UInt32 = reader.integer(), let text = reader.bytes(Int(length)), reader.isAtEnd
        else { throw malformedAnswer }
        // Codes from 256 are a client's own: a service can't send them.
        let known = code < 256 ? ServiceError.Code(rawValue: code) : nil
        let reason = String(decoding: text, as: UTF8.self)
        return ServiceError(
            known ?? .internalFault, detail: detail, origin: .service,
            known == nil ? "error \(code): \(reason)" : reason)
    }
}

/// An answer's body is not what PROTOCOL.md says.
package let malformedAnswer = ServiceError(.malformedAnswer, "the service's answer can't be read")
