import Core
import Transport
import Wire

/// The reading side of one connection: finds frames and hands them to the pipeline.
final class Session: ConnectionHandler {
    private let responder: Responder
    private let pipeline: Pipeline
    private let onClose: @Sendable () -> Void

    init(_ connection: Connection, _ pipeline: Pipeline, onClose: @escaping @Sendable () -> Void) {
        responder = Responder(connection)
        self.pipeline = pipeline
        self.onClose = onClose
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
        var start = range.lowerBound
        while !responder.pausesReading() {
            switch FrameScanner.scan(buffer.bytes(start..<range.upperBound), expecting: [.request]) {
            case .incomplete(let frameBytes):
                return Progress(consumed: start - range.lowerBound, nextFrameBytes: frameBytes)
            case .violation(let error, let requestID):
                refuse(error, requestID: requestID)
                return Progress(consumed: range.count, nextFrameBytes: 0)
            case .frame(let header):
                let end = start + Limits.frameHeaderBytes + header.bodyLength
                pipeline.handle(
                    header, body: buffer.bytes(start + Limits.frameHeaderBytes..<end),
                    frame: { FrameBytes(buffer, start..<end) }, respondingTo: responder)
                start = end
            }
        }
        return Progress(consumed: start - range.lowerBound, nextFrameBytes: 0)
    }

    /// Answers with an error that is not about one request, and closes the connection.
    func refuse(_ error: ServiceError, requestID: UInt64 = 0) {
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: 0, requestID: requestID, to: &bytes)
        responder.sendAndClose(bytes)
    }

    var isBusy: Bool { responder.hasOpenRequests }

    func drained() { responder.resumeReadingIfPossible() }

    func closed() {
        onClose()
        responder.close()
    }
}
