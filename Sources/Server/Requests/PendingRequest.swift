import Audit
import Collaboration
import Core
import Transport
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
        /// What is reserved for the request and its answer.
        var charge = MemoryCharge()
        /// Bytes that the connection holds for the request's frame until the answer.
        var keptFrameBytes = 0
        /// Whether the reserve of the memory may be used.
        var isUrgent = false
        /// Whether the reserves in the limits of the principal may be used.
        var isRemoval = false
        /// Whether the request is counted for its principal as in flight, and as a query that waits.
        var isCounted = false
        var isFollower = false
        /// The name of the collaboration layer's request, and the collaboration that it is about.
        var name: String?
        var collaboration: CollaborationIdentifier?
        /// Called when the request is dropped while it is suspended.
        var onDrop: (@Sendable () -> Void)?
        /// How long it was in each stage; `nil` unless requests are metered.
        var times: StageTimes?
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
    /// `nil` unless requests are metered.
    private let meter: RequestMeter?
    private let state = Lock(State())

    init(
        _ header: FrameHeader, _ responder: Responder, _ admission: Admission, tracer: RequestTracer? = nil,
        audit: AuditTrail? = nil, meter: RequestMeter? = nil
    ) {
        self.header = header
        principal = responder.identity.principal
        self.responder = responder
        self.admission = admission
        self.tracer = tracer
        trace = tracer?.begin(header, connection: responder.connectionNumber)
        self.audit = audit
        self.meter = meter
        if let meter {
            let times = StageTimes(now: meter.now)
            state.withLock { $0.times = times }
        }
        admission.began(Operation(rawValue: header.operation))
        responder.began()
    }

    deinit {
        let (effect, charge) = state.withLock { state in
            uncount(&state)
            return (state.life.state.isUnanswered ? state.life.apply(.drop) : nil, state.charge)
        }
        guard let effect else { return }
        if responder.isClosed {
            responder.memory.giveBack(charge)
            responder.ended(1)
        } else {
            assertionFailure("request \(header.requestID) of \(header.operation) was never answered")
            let error = ServiceError(.internalFault, "the service lost the request")
            responder.send(frame(of: error), charge, answering: 1)
        }
        admission.count(effect)
        if let trace { tracer?.end(trace) }
    }

    /// Who the connection's peer is now, which may differ from `principal` after some time.
    var presentPrincipal: Principal { responder.identity.principal }

    /// The connection's place in the worker pool's turns.
    var source: WorkSource { responder.source }

    /// Who shares memory, places and turns with others.
    var owner: Holder { responder.owner }

    /// In whose line a mutation of this request waits for the writer. `mutationEnded` follows.
    func mutationBegins() -> Holder { responder.mutationBegins() }

    func mutationEnded() { responder.mutationEnded() }

    /// Whether it goes before others' requests: it decides who may open what, or takes a right away.
    var isUrgent: Bool { state.withLock { $0.isUrgent } }

    /// Says which request of the collaboration layer it is, for the audit and the trace.
    func describe(_ name: String, about subject: RequestSubject?) {
        state.withLock { state in
            state.name = name
            if case .collaboration(let identifier) = subject { state.collaboration = identifier }
        }
        trace?.describe(name)
    }

    /// The name of the collaboration layer's request, or else of the operation.
    private var operationName: String {
        state.withLock(\.name) ?? Operation(rawValue: header.operation).map { "\($0)" } ?? "unknown"
    }

    /// A record of what the request is, as far as it is known.
    func auditRecord(_ kind: AuditRecord.Kind) -> AuditRecord {
        let collaboration = state.withLock { $0.collaboration }
        return AuditRecord(
            kind, principal: principal.auditName, peer: responder.peer.map { "\($0)" }, operation: operationName,
            collaboration: collaboration.map { "\($0)" })
    }

    /// Records that the request enters a stage, if requests are traced or metered.
    func begin(_ stage: RequestStage) {
        trace?.begin(stage)
        guard let now = meter?.now else { return }
        state.withLock { $0.times?.begin(stage, now: now) }
    }

    /// Counts the request, which was answered.
    private func meterEnd() {
        guard let meter else { return }
        let now = meter.now
        let (times, name) = state.withLock { state in
            state.times?.begin(.answering, now: now)
            return (state.times, state.name)
        }
        let operation = Operation(rawValue: header.operation)
        guard let times else { return }
        meter.count(times, RequestMeter.role(of: operation, named: name), of: ObjectIdentifier(responder)) {
            "\(name ?? operation.map { "\($0)" } ?? "an unknown operation"), request \(header.requestID)"
        }
    }

    /// Whether the connection is closed, so that no answer can arrive any more.
    var isConnectionClosed: Bool { responder.isClosed }

    // MARK: Memory

    /// Reserves memory until the request is answered or suspended, and counts the request for its principal.
    /// `received`: bytes that the connection holds for the request's frame already. `keepsFrame`: whether it does so
    /// until the answer. `isRemoval`: whether the request may use the reserves in the limits of its principal.
    ///
    /// Throws `busy`, `limitExceeded` or `shuttingDown`; then nothing is reserved.
    func reserve(
        _ bytes: Int, received: Int = 0, keepsFrame: Bool = false, isUrgent: Bool, isRemoval: Bool = false
    ) throws(ServiceError) {
        try admission.check()
        try limited { allowance throws(ServiceError) in
            try allowance.takeRequest(isRemoval: isRemoval)
            state.withLock { $0.isCounted = true }
        }
        let charge = try charge(bytes, of: bytes + received, isUrgent: isUrgent, isRemoval: isRemoval)
        state.withLock { state in
            precondition(state.life.state == .admitted && state.charge == MemoryCharge())
            state.charge = charge
            state.keptFrameBytes = keepsFrame ? received : 0
            state.isUrgent = isUrgent
            state.isRemoval = isRemoval
        }
    }

    /// Reserves as much memory as an answer of so many bytes needs, before it is made.
    ///
    /// Throws `busy` or `limitExceeded`.
    func reserveAnswer(_ bytes: Int) throws(ServiceError) {
        try cover(bytes + Limits.requestOverheadBytes)
    }

    /// Makes sure that at least so many bytes are reserved. `isLimited`: within the limit of the principal.
    ///
    /// Throws `busy` or `limitExceeded` when that is more than the share of the connection or of its peer, or than the
    /// limit.
    private func cover(_ bytes: Int, isLimited: Bool = true) throws(ServiceError) {
        let (missing, frameBytes, isUrgent, isRemoval) = state.withLock {
            (bytes - $0.charge.bytes, $0.keptFrameBytes, $0.isUrgent, $0.isRemoval)
        }
        guard missing > 0 else { return }
        let more: MemoryCharge
        if isLimited {
            more = try charge(missing, of: bytes + frameBytes, isUrgent: isUrgent, isRemoval: isRemoval)
        } else if let charge = responder.memory.reserve(missing, isUrgent: isUrgent) {
            more = charge
        } else {
            throw Admission.busy
        }
        let isTaken = state.withLock { state in
            guard state.life.state.isUnanswered else { return false }
            state.charge += more
            return true
        }
        guard !isTaken else { return }
        responder.memory.giveBack(more)
        throw Admission.busy
    }

    /// Reserves bytes, so that the request and its frame have `total`.
    ///
    /// Throws `busy` or `limitExceeded`.
    private func charge(
        _ bytes: Int, of total: Int, isUrgent: Bool, isRemoval: Bool
    ) throws(ServiceError) -> MemoryCharge {
        let limit = principal.allowance?.bytesMax(isRemoval: isRemoval) ?? .max
        if let charge = responder.memory.reserve(bytes, isUrgent: isUrgent, within: limit) { return charge }
        guard limit < .max, responder.memory.peerBytes + bytes > limit else { throw Admission.busy }
        try limited { allowance throws(ServiceError) in
            throw allowance.refuse(bytes: total, isRemoval: isRemoval)
        }
        throw Admission.busy
    }

    // MARK: Limits of the principal

    /// Takes what the request costs of the rates of its principal.
    ///
    /// Throws `busy` or `limitExceeded`.
    func spend(_ cost: RequestCost) throws(ServiceError) {
        try limited { allowance throws(ServiceError) in try allowance.spend(cost) }
    }

    /// Counts the request for its principal as a query that waits for a change, until it is answered or dropped.
    ///
    /// Throws `busy` or `limitExceeded`.
    func follow() throws(ServiceError) {
        guard !state.withLock({ $0.isFollower }) else { return }
        try limited { allowance throws(ServiceError) in
            try allowance.takeFollower()
            state.withLock { $0.isFollower = true }
        }
    }

    /// Notes for the connection when `body` throws that a limit is reached.
    private func limited(_ body: (PrincipalAllowance) throws(ServiceError) -> Void) throws(ServiceError) {
        guard let allowance = principal.allowance else { return }
        do throws(ServiceError) {
            try body(allowance)
        } catch {
            responder.noteLimit()
            throw error
        }
    }

    /// Counts the request for its principal no longer. `isOver`: also not as a query that waits.
    private func uncount(_ state: inout State, isOver: Bool = true) {
        if state.isCounted { principal.allowance?.giveBackRequest() }
        state.isCounted = false
        guard isOver, state.isFollower else { return }
        principal.allowance?.giveBackFollower()
        state.isFollower = false
    }

    // MARK: Answering

    /// Answers with the body that `body` appends, or with `busy` when it is longer than what was reserved for it and
    /// there is no more memory.
    func answer(_ body: (inout [UInt8]) -> Void) {
        let bytes = frame(body)
        if let end = end(ifCovering: bytes.count) { return send(bytes, end) }
        do throws(ServiceError) {
            try cover(bytes.count)
        } catch {
            return fail(error)
        }
        send(bytes)
    }

    /// Answers a request that has changed something: with more memory than there is, if need be.
    func answerChange(_ body: (inout [UInt8]) -> Void) {
        let bytes = frame(body)
        do throws(ServiceError) {
            try cover(bytes.count)
        } catch {
            let charge = responder.memory.take(bytes.count)
            state.withLock { $0.charge += charge }
        }
        send(bytes)
    }

    private func frame(_ body: (inout [UInt8]) -> Void) -> [UInt8] {
        begin(.answering)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        FrameWriter.append(.answer, header.operation, requestID: header.requestID, to: &bytes, body: body)
        return bytes
    }

    /// Answers a mutation.
    func answer(_ result: Result<MutationReceipt, ServiceError>) {
        switch result {
        case .success(let receipt): answerChange { Answer.append(receipt, to: &$0) }
        case .failure(let error): fail(error)
        }
    }

    /// Answers with an error. When there is no memory for that and the peer does not read, its connection is closed
    /// instead.
    func fail(_ error: ServiceError) {
        _ = tell(error)
    }

    /// Answers with `busy`. Returns false when the connection is closed instead.
    func refuse() -> Bool { tell(Admission.busy) }

    private func tell(_ error: ServiceError) -> Bool {
        begin(.answering)
        if let audit, error.isRefusalByRole {
            audit.noteRefusal(.request, of: principal.holder ?? responder.identity.address) {
                var record = auditRecord(.refusal)
                record.outcome = error.code.name
                return record
            }
        }
        admission.failed(operationName, responder.logged(header.requestID), error)
        if error.code == .busy { admission.refusals.add(1, ordering: .relaxed) }
        let bytes = frame(of: error)
        let isCovered = (try? cover(bytes.count, isLimited: false)) != nil
        let isTold = isCovered || responder.unsentBytes <= Limits.uncountedAnswerBytesMax
        if !isTold { responder.giveUp() }
        send(isTold ? bytes : [])
        return isTold
    }

    private func frame(of error: ServiceError) -> [UInt8] {
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: header.operation, requestID: header.requestID, to: &bytes)
        return bytes
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
        var charge = MemoryCharge()
        var ends: [End] = []
        func flush() {
            if let responder = ends.first?.request.responder { responder.send(bytes, charge, answering: ends.count) }
            for end in ends { end.count() }
            (bytes, charge, ends) = ([], MemoryCharge(), [])
        }
        for request in requests {
            let isUnread = ends.isEmpty && request.responder.unsentBytes > Limits.unsentBytesPerConnectionMax
            do throws(ServiceError) {
                guard !isUnread else { throw Admission.busy }
                try request.cover(Limits.frameHeaderBytes + body.count)
            } catch {
                request.fail(error)
                continue
            }
            request.begin(.answering)
            guard let end = request.end() else {
                assertionFailure("request \(request.header.requestID) was answered twice")
                continue
            }
            FrameWriter.append(.answer, request.header.operation, requestID: request.header.requestID, to: &bytes) {
                $0.append(contentsOf: body)
            }
            charge += end.charge
            ends.append(end)
            if bytes.count >= Limits.unsentBytesPerConnectionMax { flush() }
        }
        flush()
    }

    private func send(_ bytes: [UInt8]) {
        guard let end = end() else {
            return assertionFailure("request \(header.requestID) of \(header.operation) was answered twice")
        }
        send(bytes, end)
    }

    private func send(_ bytes: [UInt8], _ end: End) {
        responder.send(bytes, end.charge, answering: 1)
        end.count()
    }

    /// A request that is being answered. It counts as unanswered until `count` is called, which happens after its
    /// answer was handed to the connection. So all answers are with their connections when no request is unanswered.
    private struct End {
        let request: PendingRequest
        let effect: RequestLife.Effect
        /// What was reserved for the request. Whoever ends it gives it back, or passes it on.
        let charge: MemoryCharge

        func count() {
            request.admission.count(effect)
            if let trace = request.trace { request.tracer?.end(trace) }
            request.meterEnd()
        }
    }

    /// Ends the request. Returns `nil` when it was answered before, or when fewer than so many bytes are reserved.
    private func end(ifCovering bytes: Int = 0) -> End? {
        state.withLock { state -> End? in
            guard state.charge.bytes >= bytes, let effect = state.life.apply(.answer) else { return nil }
            assert(effect.releasesMemory)
            uncount(&state)
            defer { state.charge = MemoryCharge() }
            return End(request: self, effect: effect, charge: state.charge)
        }
    }

    // MARK: Suspending

    /// Suspends the request: it is no longer in flight, and its reserved memory is released. `onDrop` is called when
    /// the connection is closed before `resume`.
    ///
    /// Returns false when the connection has too many suspended requests or is closed. Then the request stays in
    /// flight.
    func suspend(onDrop: @escaping @Sendable () -> Void) -> Bool {
        let change = state.withLock { state -> (RequestLife.Effect, MemoryCharge)? in
            precondition(state.life.state == .admitted)
            guard responder.suspend(ObjectIdentifier(self), drop: { self.drop() }),
                let effect = state.life.apply(.suspend)
            else { return nil }
            state.onDrop = onDrop
            uncount(&state, isOver: false)
            defer { state.charge = MemoryCharge() }
            return (effect, state.charge)
        }
        guard let (effect, charge) = change else { return false }
        begin(.suspended)
        responder.memory.giveBack(charge)
        admission.count(effect)
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
            // A query that goes on stays counted as one that waits, and not as another one in flight.
            if event == .drop { uncount(&state) }
            state.onDrop = nil
            return (effect, onDrop)
        }
        guard let (effect, onDrop) = change else { return nil }
        admission.count(effect)
        return onDrop
    }

    /// Reserves memory for a request that was suspended, and checks its connection too: a connection may have many
    /// suspended requests.
    ///
    /// Throws `busy` when there is no memory, or when too many bytes of answers are unread on the connection.
    func reserveAgain() throws(ServiceError) {
        guard responder.unsentBytes <= Limits.unsentBytesPerConnectionMax else { throw Admission.busy }
        try reserveAnswer(0)
    }
}
