import Core
import Synchronization
import Transport
import Verification
import Wire

/// One connection's side of the service: finds frames, hands them on, and stops
/// reading while the peer has too much in flight or leaves its answers unread.
final class Session: ConnectionHandler {
    private struct State {
        var inFlight = 0
        /// Requests that wait for news: they hold up nothing.
        var parked = 0
        var isClosed = false
        var isPaused = false
    }

    let source = WorkSource()
    private let connection: Connection
    private let pipeline: Pipeline
    private let state = Mutex(State())
    private let onClose: @Sendable () -> Void

    init(_ connection: Connection, _ pipeline: Pipeline, onClose: @escaping @Sendable () -> Void) {
        self.connection = connection
        self.pipeline = pipeline
        self.onClose = onClose
    }

    // MARK: On the loop's thread

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
        var start = range.lowerBound
        while true {
            if hasTooMuch() {
                connection.pauseReading()
                return Progress(consumed: start - range.lowerBound, nextFrameBytes: 0)
            }
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
                    frame: { FrameBytes(buffer, start..<end) }, from: self)
                start = end
            }
        }
    }

    /// Answers with an error that is not about one request and closes.
    func refuse(_ error: ServiceError, requestID: UInt64 = 0) {
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: 0, requestID: requestID, to: &bytes)
        connection.send(bytes)
        connection.close()
    }

    var isBusy: Bool { state.withLock { $0.inFlight > 0 || $0.parked > 0 } }

    func drained() { resumeIfPossible() }

    func closed() {
        onClose()
        let hasParked = state.withLock { state in
            state.isClosed = true
            return state.parked > 0
        }
        if hasParked { pipeline.collaboration.followers.forget(source) }
    }

    private func hasTooMuch() -> Bool {
        let unsent = connection.unsentBytes
        return state.withLock { state in
            state.isPaused =
                state.inFlight >= Limits.requestsInFlightPerConnectionMax
                || unsent > Limits.unsentBytesPerConnectionMax
            return state.isPaused
        }
    }

    // MARK: From any thread

    func began() {
        state.withLock { $0.inFlight += 1 }
    }

    /// A request goes on without being in flight. False when too many do.
    func park() -> Bool {
        let isParked = state.withLock { state in
            guard !state.isClosed, state.parked < Limits.followsPerConnectionMax else { return false }
            state.inFlight -= 1
            state.parked += 1
            return true
        }
        if isParked { resumeIfPossible() }
        return isParked
    }

    /// Bytes of answers that the peer has not taken yet.
    var unsentBytes: Int { connection.unsentBytes }

    func unpark() {
        state.withLock { state in
            state.inFlight += 1
            state.parked -= 1
        }
    }

    /// Sends the answers to so many requests.
    func answer(_ bytes: [UInt8], requests: Int) {
        connection.send(bytes)
        state.withLock { $0.inFlight -= requests }
        resumeIfPossible()
    }

    private func resumeIfPossible() {
        let unsent = connection.unsentBytes
        let resumes = state.withLock { state in
            guard state.isPaused, state.inFlight <= Limits.requestsInFlightPerConnectionMax / 2,
                unsent <= Limits.unsentBytesPerConnectionMax
            else { return false }
            state.isPaused = false
            return true
        }
        if resumes { connection.resumeReading() }
    }
}
