package import Core

/// Makes frames.
package enum FrameWriter {
    /// Appends a frame whose body is what `body` appends.
    package static func append(
        _ kind: FrameKind, _ operation: UInt16, requestID: UInt64, to bytes: inout [UInt8],
        body: (inout [UInt8]) -> Void = { _ in }
    ) {
        let start = begin(kind, operation, requestID: requestID, to: &bytes)
        body(&bytes)
        end(start, &bytes)
    }

    /// Appends the header of a frame. What is appended then is its body, until `end`. Returns what `end` needs.
    package static func begin(
        _ kind: FrameKind, _ operation: UInt16, requestID: UInt64, to bytes: inout [UInt8]
    ) -> Int {
        defer { FrameHeader(kind: kind, operation: operation, requestID: requestID).append(to: &bytes) }
        return bytes.count
    }

    /// Ends the frame that `begin` began, the last one in `bytes`. `start`: what it returned.
    package static func end(_ start: Int, _ bytes: inout [UInt8]) {
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
            bytes.appendInteger(error.sentDetail)
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

extension ServiceError {
    /// The detail for a client. Within the service that of a storage's error may be LMDB's code, which is below 0 and
    /// says nothing to a client.
    fileprivate var sentDetail: UInt32 {
        switch code {
        case .storageDamaged: 0
        case .storageFull, .storageFailed: CInt(bitPattern: detail) > 0 ? detail : 0
        default: detail
        }
    }
}
