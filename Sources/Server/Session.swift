import Core
import Transport
import Wire

/// The reading side of one connection: finds frames and hands them to the pipeline.
final class Session: ConnectionHandler {
    private let responder: Responder
    private let pipeline: Pipeline
    private let onClose: @Sendable () -> Void

    init(_ connection: Connection, _ pipeline: Pipeline, onClose: @escaping @Sendable () -> Void) {
        let peer = connection.peer
        responder = Responder(
            connection,
            ConnectionIdentity(pipeline.principals, certificate: connection.peerCertificate, peer: peer),
            peer: pipeline.storage.trail == nil ? nil : peer)
        self.pipeline = pipeline
        self.onClose = onClose
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
        var frames = FrameReader(buffer.bytes(range), expecting: [.request])
        while !responder.isRefused, !responder.pausesReading(), let frame = frames.next() {
            let place = range.lowerBound + frame.range.lowerBound..<range.lowerBound + frame.range.upperBound
            pipeline.handle(
                frame.header, body: frame.body, frame: { FrameBytes(buffer, place) }, respondingTo: responder)
        }
        if let violation = frames.violation { refuse(violation.error, requestID: violation.requestID) }
        return Progress(consumed: frames.consumed, nextFrameBytes: frames.nextFrameBytes)
    }

    /// Answers with an error that is not about one request, and closes the connection.
    func refuse(_ error: ServiceError, requestID: UInt64 = 0) {
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
