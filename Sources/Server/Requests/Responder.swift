import Core
import Synchronization
import Transport
import Verification

/// The answering side of one connection: sends answers and counts the peer's requests. It stops reading while too many
/// requests are in flight or too many bytes of answers are unread.
final class Responder: Sendable {
    private struct State {
        /// Requests that are neither answered, suspended nor dropped.
        var inFlight = 0
        /// What drops each suspended request; at most `Limits.followsPerConnectionMax`. It keeps the request alive, so
        /// that no other one has its address.
        var suspended: [ObjectIdentifier: @Sendable () -> Void] = [:]
        var isClosed = false
        var isPaused = false
        /// Whether the peer was refused: nothing more is read.
        var isRefused = false
    }

    /// The connection's place in the worker pool's turns.
    let source = WorkSource()
    /// Who sends the connection's requests.
    let identity: ConnectionIdentity
    /// Who the peer is, for the audit; `nil` unless there is one.
    let peer: Peer?
    private let connection: Connection
    private let state = Mutex(State())

    init(_ connection: Connection, _ identity: ConnectionIdentity, peer: Peer? = nil) {
        self.peer = peer
        self.connection = connection
        self.identity = identity
    }

    /// Bytes of answers that the peer has not taken yet.
    var unsentBytes: Int { connection.unsentBytes }

    var hasUnansweredRequests: Bool { state.withLock { $0.inFlight > 0 || !$0.suspended.isEmpty } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    // MARK: On the loop's thread

    /// Stops reading when too many requests are in flight or too many bytes are unread. Returns whether it stopped.
    func pausesReading() -> Bool {
        connection.assertOnThread()
        let unsent = connection.unsentBytes
        let isPaused = state.withLock { state in
            state.isPaused =
                state.inFlight >= Limits.requestsInFlightPerConnectionMax || unsent > Limits.unsentBytesPerConnectionMax
            return state.isPaused
        }
        if isPaused { connection.pauseReading() }
        return isPaused
    }

    /// Drops the suspended requests, because the connection is closed. Later answers to the other requests are
    /// discarded.
    func close() {
        connection.assertOnThread()
        let drops = state.withLock { state in
            state.isClosed = true
            return Array(state.suspended.values)
        }
        for drop in drops { drop() }
    }

    /// Whether the peer was refused: frames that follow are not read.
    var isRefused: Bool { state.withLock { $0.isRefused } }

    /// Closes the connection when the answers that were given are sent. No further frame is read.
    func refuse() {
        state.withLock { $0.isRefused = true }
        connection.close()
    }

    /// Sends an answer that belongs to no request, and closes the connection.
    func sendAndClose(_ bytes: [UInt8]) {
        connection.send(bytes)
        connection.close()
    }

    // MARK: On any thread

    func began() {
        state.withLock { $0.inFlight += 1 }
    }

    /// Adds a request to the suspended ones. Returns false when there are too many, or when the connection is closed.
    /// `drop` is called when the connection is closed while the request is suspended.
    ///
    /// Called with the request's lock held.
    func suspend(_ request: ObjectIdentifier, drop: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.suspended.count < Limits.followsPerConnectionMax else { return false }
            let previous = state.suspended.updateValue(drop, forKey: request)
            precondition(previous == nil && state.inFlight > 0)
            state.inFlight -= 1
            return true
        }
    }

    /// Removes a request from the suspended ones. `isInFlight`: whether it is in flight again; otherwise it was
    /// dropped.
    ///
    /// Called with the request's lock held.
    func unsuspend(_ request: ObjectIdentifier, isInFlight: Bool) {
        state.withLock { state in
            let previous = state.suspended.removeValue(forKey: request)
            precondition(previous != nil)
            if isInFlight { state.inFlight += 1 }
        }
    }

    /// Sends the answers to `count` requests.
    func send(_ bytes: [UInt8], answering count: Int) {
        connection.send(bytes)
        ended(count)
    }

    /// Counts `count` requests as no longer in flight.
    func ended(_ count: Int) {
        state.withLock { state in
            precondition(state.inFlight >= count)
            state.inFlight -= count
        }
        resumeReadingIfPossible()
    }

    /// Reads again when at most half of the allowed requests are in flight and the peer has read most of its answers.
    func resumeReadingIfPossible() {
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
