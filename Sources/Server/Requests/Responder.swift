import Core
import Transport
import Verification
import Wire

/// The answering side of one connection: sends answers and counts the peer's requests. It stops reading while too many
/// requests are in flight or too many bytes of answers are unread.
final class Responder: AnswerGathering {
    private struct State {
        /// Requests that are neither answered, suspended nor dropped.
        var inFlight = 0
        /// What drops each suspended request; at most `Limits.followsPerConnectionMax`. It keeps the request alive, so
        /// that no other one has its address.
        var suspended: [ObjectIdentifier: @Sendable () -> Void] = [:]
        var isClosed = false
        var isPaused = false
        /// The last frame, when the connection has to make room for another one. It is sent when no request is in
        /// flight any more.
        var farewell: [UInt8]?
        var owner: Holder
        /// The connection's mutations that wait for the writer, in number, and in whose line.
        var mutations = 0
        var mutationOwner = Holder.service
        /// Whether the peer was refused: nothing more is read.
        var isRefused = false
        /// Requests above a limit of their principal since the connection was paused for that last.
        var limitRefusals = 0
        /// Whether the connection is not read for a while because of such requests.
        var isHeldBack = false
    }

    /// The connection's place in the worker pool's turns.
    let source: WorkSource
    /// Who sends the connection's requests.
    let identity: ConnectionIdentity
    /// Who the peer is, for the audit; `nil` unless there is one.
    let peer: Peer?
    /// The connection's number since the start, for the log.
    let connectionNumber: UInt64
    private let connection: Connection
    private let timers: Timers
    /// Called when the connection is another holder's from now on.
    private let onMove: @Sendable (Holder) -> Void
    private let state: Lock<State>

    /// The connection is its address's until `become`.
    init(
        _ connection: Connection, _ identity: ConnectionIdentity, number: UInt64 = 0, peer: Peer? = nil,
        timers: Timers = .system, onMove: @escaping @Sendable (Holder) -> Void = { _ in }
    ) {
        state = Lock(State(owner: identity.address))
        source = WorkSource(identity.address)
        self.peer = peer
        connectionNumber = number
        self.timers = timers
        self.onMove = onMove
        self.connection = connection
        self.identity = identity
        source.answers = self
    }

    /// A request of the connection, for the log.
    func logged(_ requestID: UInt64) -> LogLine.Request {
        LogLine.Request(connection: connectionNumber, number: requestID)
    }

    /// What the connection holds of the memory for requests.
    var memory: MemoryAccount { connection.memory }

    /// Bytes of answers that the peer has not taken yet.
    var unsentBytes: Int { connection.unsentBytes }

    var hasUnansweredRequests: Bool { state.withLock { $0.inFlight > 0 || !$0.suspended.isEmpty } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Who shares memory, places and turns with others.
    var owner: Holder { state.withLock { $0.owner } }

    /// Counts the connection as this peer's from now on: what it holds, its turns and its place. Queries that are
    /// suspended already stay whose they are.
    func become(_ peer: Holder, _ pool: WorkerPool) {
        let isOther = state.withLock { state in
            defer { state.owner = peer }
            return state.owner != peer
        }
        guard isOther else { return }
        memory.move(to: peer)
        pool.move(source, to: peer)
        onMove(peer)
    }

    /// In whose line the connection's next mutation waits for the writer: in that of its earlier ones as long as some
    /// wait. So they keep their order when the connection becomes another peer's. `mutationEnded` follows.
    func mutationBegins() -> Holder {
        state.withLock { state in
            if state.mutations == 0 { state.mutationOwner = state.owner }
            state.mutations += 1
            return state.mutationOwner
        }
    }

    func mutationEnded() {
        state.withLock { state in
            precondition(state.mutations > 0, "a mutation ended that had not begun")
            state.mutations -= 1
        }
    }

    /// What the connection does; `nil` while requests are in flight, or when it is about to be closed.
    var occupation: Occupation? {
        state.withLock { state in
            guard state.inFlight == 0, !state.isClosed, state.farewell == nil else { return nil }
            return Occupation(isWaiting: !state.suspended.isEmpty, since: connection.lastActivity)
        }
    }

    /// Closes the connection, because another one needs its place, as soon as no request is in flight. `isTold`:
    /// whether it may stay until it has got an error that says so.
    func makeRoom(connectionsMax: Int, isTold: Bool) {
        var bytes: [UInt8] = []
        let error = ServiceError(
            .tooManyConnections, detail: UInt32(connectionsMax),
            "there are too many connections, and this one was idle for the longest time")
        FrameWriter.appendError(error, operation: 0, requestID: 0, to: &bytes)
        let isIdle = state.withLock { state in
            state.farewell = bytes
            return state.inFlight == 0
        }
        guard isIdle else { return }
        if isTold { sendAndClose(bytes) } else { connection.closeAtOnce() }
    }

    // MARK: On the loop's thread

    /// Stops reading when too many requests are in flight, too many bytes are unread, or memory is short until some of
    /// the connection's own requests are answered. Returns how many requests may begin now: 0 when it stopped, or when
    /// the peer was refused.
    func requestsAllowed() -> Int {
        connection.assertOnThread()
        let unsent = connection.unsentBytes
        let isStrained = memory.isStrained
        let (isPaused, allowed) = state.withLock { state in
            guard !state.isRefused else { return (false, 0) }
            state.isPaused =
                state.inFlight >= Limits.requestsInFlightPerConnectionMax
                || unsent > Limits.unsentBytesPerConnectionMax || (isStrained && (state.inFlight > 0 || unsent > 0))
                || state.farewell != nil || state.limitRefusals >= Limits.limitRefusalsPerTurn
            return (state.isPaused, state.isPaused ? 0 : Limits.requestsInFlightPerConnectionMax - state.inFlight)
        }
        if isPaused { connection.pauseReading() }
        return allowed
    }

    /// Stops reading for a while when the connection has sent requests above a limit. So they cost little, and who
    /// waits as long as `busy` says is not delayed.
    func holdBackIfLimited() {
        connection.assertOnThread()
        let begins = state.withLock { state in
            guard state.limitRefusals > 0, !state.isHeldBack else { return false }
            state.limitRefusals = 0
            state.isHeldBack = true
            state.isPaused = true
            return true
        }
        guard begins else { return }
        connection.pauseReading()
        let pause = identity.principal.allowance?.pause() ?? Limits.limitTurnMilliseconds
        timers.after(milliseconds: Int(pause)) { [weak self] in self?.release() }
    }

    private func release() {
        state.withLock { $0.isHeldBack = false }
        resumeReadingIfPossible()
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

    func began(_ count: Int = 1) {
        state.withLock { $0.inFlight += count }
    }

    /// Notes that a request was refused because of a limit of its principal.
    func noteLimit() {
        state.withLock { $0.limitRefusals += 1 }
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

    /// Sends the answers to `count` requests, for which `charge` is reserved.
    func send(_ bytes: [UInt8], _ charge: MemoryCharge, answering count: Int) {
        connection.send(bytes, charge)
        ended(count)
    }

    func beginGathering() { connection.beginGathering() }

    func endGathering() {
        if connection.endGathering() { resumeReadingIfPossible() }
    }

    /// Closes the connection of a peer that sends without reading while there is no memory for telling it so.
    func giveUp() {
        connection.close()
    }

    /// Counts `count` requests as no longer in flight.
    func ended(_ count: Int) {
        let farewell = state.withLock { state -> [UInt8]? in
            precondition(state.inFlight >= count)
            state.inFlight -= count
            return state.inFlight == 0 ? state.farewell : nil
        }
        if let farewell { sendAndClose(farewell) } else { resumeReadingIfPossible() }
    }

    /// Reads again when at most half of the allowed requests are in flight, the peer has read most of its answers, and
    /// memory is not short.
    func resumeReadingIfPossible() {
        let unsent = connection.unsentBytes
        let isStrained = memory.isStrained
        let resumes = state.withLock { state in
            guard state.isPaused, !state.isHeldBack, state.farewell == nil,
                state.inFlight <= Limits.requestsInFlightPerConnectionMax / 2,
                unsent <= Limits.unsentBytesPerConnectionMax, !isStrained || (state.inFlight == 0 && unsent == 0)
            else { return false }
            state.isPaused = false
            return true
        }
        if resumes { connection.resumeReading() }
    }
}
