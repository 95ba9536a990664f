package import Core

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
