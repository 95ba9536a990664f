package import Core

/// A whole frame in some received bytes, valid as long as those are.
package struct ReceivedFrame {
    package let header: FrameHeader
    package let body: UnsafeRawBufferPointer
    /// Where the frame, header included, stands in the received bytes.
    package let range: Range<Int>
}

/// Reads the frames in some received bytes, one after the other. Pure, as the scanner is: whoever receives calls `next`
/// until it is nil, then keeps the bytes behind `consumed` until `nextFrameBytes` are there.
///
///     var frames = FrameReader(received, expecting: [.request])
///     while let frame = frames.next() { handle(frame.header, frame.body) }
///     if let violation = frames.violation { refuse(violation.error, requestID: violation.requestID) }
///     return Progress(consumed: frames.consumed, nextFrameBytes: frames.nextFrameBytes)
package struct FrameReader {
    private let bytes: UnsafeRawBufferPointer
    private let kinds: [FrameKind]

    /// Bytes of the frames that `next` returned; after a violation all bytes, because nothing behind it can be read.
    package private(set) var consumed = 0
    /// After `next` returned nil: how many bytes the next frame will have, header included (16 while that is unknown);
    /// 0 before and after a violation.
    package private(set) var nextFrameBytes = 0
    /// Why no further frame can be found: the connection is to be closed.
    package private(set) var violation: (error: ServiceError, requestID: UInt64)?

    package init(_ bytes: UnsafeRawBufferPointer, expecting kinds: [FrameKind]) {
        self.bytes = bytes
        self.kinds = kinds
    }

    /// The next whole frame; nil when the rest of the bytes is no whole frame, or after a violation.
    package mutating func next() -> ReceivedFrame? {
        guard violation == nil else { return nil }
        switch FrameScanner.scan(UnsafeRawBufferPointer(rebasing: bytes[consumed...]), expecting: kinds) {
        case .incomplete(let frameBytes):
            nextFrameBytes = frameBytes
            return nil
        case .violation(let error, let requestID):
            violation = (error, requestID)
            consumed = bytes.count
            return nil
        case .frame(let header):
            let start = consumed
            let body = start + Limits.frameHeaderBytes
            consumed = body + header.bodyLength
            return ReceivedFrame(
                header: header, body: UnsafeRawBufferPointer(rebasing: bytes[body..<consumed]), range: start..<consumed)
        }
    }
}
