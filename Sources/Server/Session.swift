import Core
import Transport
import Wire

/// The reading side of one connection: finds frames and hands them to the pipeline.
final class Session: ConnectionHandler {
    let responder: Responder
    private let pipeline: Pipeline
    private let onClose: @Sendable () -> Void

    /// `address`: who shares memory, places and turns with others, until the peer is known better. `onMove` is called
    /// when it is.
    init(
        _ connection: Connection, _ pipeline: Pipeline, address: Holder, onMove: @escaping @Sendable (Holder) -> Void,
        onClose: @escaping @Sendable () -> Void
    ) {
        let peer = connection.peer
        let identity = ConnectionIdentity(
            pipeline.principals, certificate: connection.peerCertificate, peer: peer, address: address)
        responder = Responder(
            connection, identity, number: pipeline.admission.nextConnection(),
            peer: pipeline.storage.trail == nil ? nil : peer, timers: pipeline.timers, onMove: onMove)
        self.pipeline = pipeline
        self.onClose = onClose
        responder.become(identity.holder, pipeline.pool)
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
        var frames = FrameReader(buffer.bytes(range), expecting: [.request])
        var mayBeSeries = true
        var kind: WorkKind?
        while true {
            let allowed = responder.requestsAllowed()
            guard allowed > 0 else { break }
            if mayBeSeries {
                switch handleSeries(&frames, of: min(allowed, Limits.proofsPerTurn), buffer, range.lowerBound) {
                case .handled:
                    kind = .prompt
                    continue
                // The requests would be tried as a series again and again.
                case .refused: mayBeSeries = false
                case .none: break
                }
            }
            guard let frame = frames.next() else { break }
            let place = range.lowerBound + frame.range.lowerBound..<range.lowerBound + frame.range.upperBound
            let next = pipeline.handle(
                frame.header, body: frame.body, frame: { FrameBytes(buffer, place) },
                frameBytes: buffer.bytesToKeep(place), respondingTo: responder)
            if kind != .prompt { kind = next }
        }
        if let violation = frames.violation { refuse(violation.error, requestID: violation.requestID) }
        responder.holdBackIfLimited()
        return Progress(consumed: frames.consumed, nextFrameBytes: frames.nextFrameBytes, kind: kind)
    }

    private enum Series {
        case handled
        /// One of the requests might be refused.
        case refused
        /// The next frame is no request that could be in a series, or not whole.
        case none
    }

    /// Handles the next requests together if they have one proof each, up to `room` of them. `start`: where the frames
    /// begin in the buffer.
    private func handleSeries(
        _ frames: inout FrameReader, of room: Int, _ buffer: ReceiveBuffer, _ start: Int
    ) -> Series {
        let first = frames.consumed
        var ahead = frames
        guard let frame = ahead.next(), let isSigned = SingleProofs.isSigned(frame.header.operation) else {
            return .none
        }
        var proofs = SingleProofs(isSigned: isSigned)
        guard proofs.append(frame.header, frame.body, at: 0) else { return .none }
        var last = ahead
        while proofs.count < room, let frame = ahead.next(),
            proofs.append(frame.header, frame.body, at: frame.range.lowerBound - first)
        {
            last = ahead
        }
        let place = start + first..<start + last.consumed
        let isHandled = pipeline.handle(
            proofs, in: buffer.bytes(place), frames: { FrameBytes(buffer, place) },
            frameBytes: buffer.bytesToKeep(place), respondingTo: responder)
        guard isHandled else { return .refused }
        frames = last
        return .handled
    }

    /// Answers `busy` to each request that begins in the bytes, because there is no memory for keeping them.
    func refused(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Refusal? {
        let bytes = buffer.bytes(range)
        var frames = FrameReader(bytes, expecting: [.request])
        while let frame = frames.next() {
            guard pipeline.refuse(frame.header, respondingTo: responder) else { return nil }
        }
        if let violation = frames.violation { refuse(violation.error, requestID: violation.requestID) }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[frames.consumed...])
        guard let header = FrameScanner.header(ofIncomplete: rest) else {
            return Refusal(consumed: frames.consumed, missing: 0)
        }
        guard pipeline.refuse(header, respondingTo: responder) else { return nil }
        return Refusal(consumed: bytes.count, missing: frames.nextFrameBytes - rest.count)
    }

    func isUrgent(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let header = FrameScanner.header(ofIncomplete: bytes) else { return false }
        return Urgency.isUrgent(
            header.operation, UnsafeRawBufferPointer(rebasing: bytes[Limits.frameHeaderBytes...]))
    }

    /// Answers with an error that is not about one request, and closes the connection.
    func refuse(_ error: ServiceError, requestID: UInt64 = 0) {
        pipeline.admission.refused(responder.logged(requestID), error)
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: 0, requestID: requestID, to: &bytes)
        responder.sendAndClose(bytes)
    }

    var isBusy: Bool { responder.hasUnansweredRequests }

    func drained() { responder.resumeReadingIfPossible() }

    func closed() {
        onClose()
        responder.close()
    }
}
