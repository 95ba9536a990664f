import Audit
import Collaboration
import Core
import Synchronization
import Verification
import Wire

/// A request that is owed an answer.
///
/// Guarantees exactly one answer to a request (asserted), unless its connection is closed first. `RequestLife` has the
/// rules. This class applies them, sends the answer, and updates the counters. Any thread may use it.
///
/// A request that would never be answered stops a debug build. A release build answers it with `internalFault`.
final class PendingRequest: Sendable {
    private struct State {
        var life = RequestLife()
        var reservedBytes = 0
        /// The name of the collaboration layer's request, and the collaboration that it is about.
        var name: String?
        var collaboration: CollaborationIdentifier?
        /// Called when the request is dropped while it is suspended.
        var onDrop: (@Sendable () -> Void)?
    }

    let header: FrameHeader
    /// Who sent the request.
    let principal: Principal
    private let responder: Responder
    private let admission: Admission
    private let tracer: RequestTracer?
    /// `nil` unless requests are traced.
    private let trace: RequestTrace?
    /// `nil` unless there is an audit.
    private let audit: AuditTrail?
    private let state = Mutex(State())

    init(
        _ header: FrameHeader, _ responder: Responder, _ admission: Admission, tracer: RequestTracer? = nil,
        audit: AuditTrail? = nil
    ) {
        self.header = header
        principal = responder.identity.principal
        self.responder = responder
        self.admission = admission
        self.tracer = tracer
        trace = tracer?.begin(header)
        self.audit = audit
        admission.began()
        responder.began()
    }

    deinit {
        let (isUnanswered, reserved) = state.withLock { ($0.life.state.isUnanswered, $0.reservedBytes) }
        guard isUnanswered else { return }
        guard let effect = state.withLock({ $0.life.apply(.drop) }) else { return }
        if responder.isClosed {
            responder.ended(1)
        } else {
            assertionFailure("request \(header.requestID) of \(header.operation) was never answered")
            var bytes: [UInt8] = []
            let error = ServiceError(.internalFault, "the service lost the request")
            FrameWriter.appendError(error, operation: header.operation, requestID: header.requestID, to: &bytes)
            responder.send(bytes, answering: 1)
        }
        admission.count(effect, reserved: reserved)
        if let trace { tracer?.end(trace) }
    }

    /// Who the connection's peer is now, which may differ from `principal` after some time.
    var presentPrincipal: Principal { responder.identity.principal }

    /// The connection's place in the worker pool's turns.
    var source: WorkSource { responder.source }

    /// Says which request of the collaboration layer it is, for the audit.
    func describe(_ name: String, about subject: RequestSubject?) {
        state.withLock { state in
            state.name = name
            if case .collaboration(let identifier) = subject { state.collaboration = identifier }
        }
    }

    /// A record of what the request is, as far as it is known.
    func auditRecord(_ kind: AuditRecord.Kind) -> AuditRecord {
        let (name, collaboration) = state.withLock { ($0.name, $0.collaboration) }
        return AuditRecord(
            kind, principal: principal.auditName, peer: responder.peer.map { "\($0)" },
            operation: name ?? Operation(rawValue: header.operation).map { "\($0)" } ?? "unknown",
            collaboration: collaboration.map { "\($0)" })
    }

    /// Records in the trace that the request enters a stage.
    func begin(_ stage: RequestStage) { trace?.begin(stage) }

    /// Whether the connection is closed, so that no answer can arrive any more.
    var isConnectionClosed: Bool { responder.isClosed }

    /// Reserves memory until the request is answered or suspended.
    ///
    /// Throws `busy` or `shuttingDown`.
    func reserve(bytes: Int) throws(ServiceError) {
        try admission.reserve(bytes)
        state.withLock { state in
            precondition(state.life.state == .admitted && state.reservedBytes == 0)
            state.reservedBytes = bytes
        }
    }

    // MARK: Answering

    /// Answers with the body that `body` appends.
    func answer(_ body: (inout [UInt8]) -> Void) {
        begin(.answering)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        FrameWriter.append(.answer, header.operation, requestID: header.requestID, to: &bytes, body: body)
        send(bytes)
    }

    /// Answers a mutation.
    func answer(_ result: Result<MutationReceipt, ServiceError>) {
        switch result {
        case .success(let receipt): answer { Answer.append(receipt, to: &$0) }
        case .failure(let error): fail(error)
        }
    }

    /// Answers with an error.
    func fail(_ error: ServiceError) {
        begin(.answering)
        if let audit, error.isRefusalByRole {
            var record = auditRecord(.refusal)
            record.outcome = error.code.name
            audit.note(record)
        }
        if error.code == .busy { admission.refusals.add(1, ordering: .relaxed) }
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: header.operation, requestID: header.requestID, to: &bytes)
        send(bytes)
    }

    /// Answers all requests with the same body. The answers of one connection are sent together. Requests of a
    /// connection with too many unread bytes get `busy`.
    static func answer(_ requests: [PendingRequest], _ body: [UInt8]) {
        guard requests.count > 1 else {
            requests.first?.answer { $0.append(contentsOf: body) }
            return
        }
        for requests in Dictionary(grouping: requests, by: { ObjectIdentifier($0.responder) }).values {
            answerOfOneConnection(requests, body)
        }
    }

    private static func answerOfOneConnection(_ requests: [PendingRequest], _ body: [UInt8]) {
        var bytes: [UInt8] = []
        var ends: [End] = []
        func flush() {
            if let responder = ends.first?.request.responder { responder.send(bytes, answering: ends.count) }
            for end in ends { end.count() }
            (bytes, ends) = ([], [])
        }
        for request in requests {
            if ends.isEmpty, request.responder.unsentBytes > Limits.unsentBytesPerConnectionMax {
                request.fail(Admission.busy)
                continue
            }
            request.begin(.answering)
            guard let end = request.end() else { continue }
            FrameWriter.append(.answer, request.header.operation, requestID: request.header.requestID, to: &bytes) {
                $0.append(contentsOf: body)
            }
            ends.append(end)
            if bytes.count >= Limits.unsentBytesPerConnectionMax { flush() }
        }
        flush()
    }

    private func send(_ bytes: [UInt8]) {
        guard let end = end() else { return }
        responder.send(bytes, answering: 1)
        end.count()
    }

    /// A request that is being answered. It counts as unanswered until `count` is called, which happens after its
    /// answer was handed to the connection. So all answers are with their connections when no request is unanswered.
    private struct End {
        let request: PendingRequest
        let effect: RequestLife.Effect
        let reserved: Int

        func count() {
            request.admission.count(effect, reserved: reserved)
            if let trace = request.trace { request.tracer?.end(trace) }
        }
    }

    private func end() -> End? {
        let end = state.withLock { state -> End? in
            guard let effect = state.life.apply(.answer) else { return nil }
            return End(request: self, effect: effect, reserved: state.reservedBytes)
        }
        assert(end != nil, "request \(header.requestID) of \(header.operation) was answered twice")
        return end
    }

    // MARK: Suspending

    /// Suspends the request: it is no longer in flight, and its reserved memory is released. `onDrop` is called when
    /// the connection is closed before `resume`.
    ///
    /// Returns false when the connection has too many suspended requests or is closed. Then the request stays in
    /// flight.
    func suspend(onDrop: @escaping @Sendable () -> Void) -> Bool {
        let change = state.withLock { state -> (RequestLife.Effect, Int)? in
            precondition(state.life.state == .admitted)
            guard responder.suspend(ObjectIdentifier(self), drop: { self.drop() }),
                let effect = state.life.apply(.suspend)
            else { return nil }
            state.onDrop = onDrop
            defer { state.reservedBytes = 0 }
            return (effect, state.reservedBytes)
        }
        guard let (effect, reserved) = change else { return false }
        begin(.suspended)
        admission.count(effect, reserved: reserved)
        return true
    }

    /// Resumes reading the connection if it had stopped because of this request. Called after `suspend`.
    func resumeReading() { responder.resumeReadingIfPossible() }

    /// Puts the request in flight again. Returns false when it was dropped meanwhile; then the caller must not answer
    /// it.
    func resume() -> Bool { leaveSuspension(.resume) != nil }

    /// Forgets a suspended request: its connection is closed.
    func drop() {
        guard let onDrop = leaveSuspension(.drop) else { return }
        onDrop()
        if let trace { tracer?.end(trace) }
    }

    /// Ends the suspension by `event`. Returns the `onDrop` of `suspend`, or `nil` when the request was not suspended.
    private func leaveSuspension(_ event: RequestLife.Event) -> (@Sendable () -> Void)? {
        let change = state.withLock { state -> (RequestLife.Effect, @Sendable () -> Void)? in
            guard state.life.state == .suspended, let onDrop = state.onDrop, let effect = state.life.apply(event)
            else { return nil }
            responder.unsuspend(ObjectIdentifier(self), isInFlight: event == .resume)
            state.onDrop = nil
            return (effect, onDrop)
        }
        guard let (effect, onDrop) = change else { return nil }
        admission.count(effect, reserved: 0)
        return onDrop
    }

    /// Checks that an answer of unknown size may be built now.
    ///
    /// Throws `busy` when too many bytes of answers are unread on all connections together.
    func checkRoom() throws(ServiceError) {
        try admission.checkRoom()
    }

    /// Checks the same for a request that was suspended, and checks its connection too: a connection may have many
    /// suspended requests.
    ///
    /// Throws `busy` when too many bytes of answers are unread on all connections together, or on this one.
    func checkRoomOnConnection() throws(ServiceError) {
        try admission.checkRoom()
        guard responder.unsentBytes <= Limits.unsentBytesPerConnectionMax else { throw Admission.busy }
    }
}
