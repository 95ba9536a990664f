import Core
import Dispatch
import Synchronization
import Transport
import Wire

/// One connection with the requests that wait for answers on it.
final class Link: ConnectionHandler {
    private typealias Waiter = CheckedContinuation<Result<[UInt8], ServiceError>, Never>

    private struct State {
        var nextID: UInt64 = 1
        /// Who waits for the body of an answer, and until when.
        var waiting: [UInt64: (waiter: Waiter, deadline: ContinuousClock.Instant)] = [:]
        /// Who waits for the verdict on a single proof.
        var line = VerifyLine()
        var isClosed = false
        /// Whether the connection is closed when nobody waits any more.
        var isRetired = false
        /// The time that the timer is set for, which is no later than the earliest deadline. Most requests are answered
        /// long before their deadline, so the timer is rarely set again.
        var alarm: ContinuousClock.Instant?

        mutating func newID() -> UInt64 {
            defer { nextID += 1 }
            return nextID
        }

        /// The requests with single proofs that are to be sent now.
        mutating func takePackages() -> [VerifyLine.Package] { line.take(&nextID) }
    }

    private let connection: Connection
    private let state = Lock(State())
    private let isOpen = Atomic<Bool>(true)
    /// Whether the service has sent anything on this connection.
    private let hasReceived = Atomic<Bool>(false)
    /// Holds the link until the connection ends, rather than weakly: counting the references of an object to which
    /// there are weak ones takes longer, and each call counts. The reference never changes, and Dispatch's sources may
    /// be used from any thread.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    init(_ connection: Connection) {
        self.connection = connection
        timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { [self] in expire() }
        timer.resume()
    }

    /// Whether new requests may be sent: the connection has not ended, and the service is not shutting down.
    /// `State.isClosed` tells the former to who has the lock.
    var isConnected: Bool { isOpen.load(ordering: .relaxed) }

    /// Whether a request that ended with this error was not begun, so that it can be sent again whatever it is. A
    /// service that shuts down answers what it has begun before it closes the connection.
    static func wasNotBegun(_ error: ServiceError) -> Bool {
        error.code == .shuttingDown || error.code == .connectionLost && error.reason == unsent.reason
    }

    func close() {
        connection.close()
    }

    /// Closes the connection when what waits has ended. Nobody sends requests over it any more.
    func retire() {
        isOpen.store(false, ordering: .relaxed)
        state.withLock { $0.isRetired = true }
        closeIfDone()
    }

    private func closeIfDone() {
        let isDone = state.withLock { $0.isRetired && !$0.isClosed && $0.waiting.isEmpty && $0.line.isEmpty }
        if isDone { connection.close() }
    }

    /// Sends a request and waits for the body of its answer.
    func request(
        _ operation: Operation, body: [UInt8], deadline: ContinuousClock.Instant
    ) async -> Result<[UInt8], ServiceError> {
        let id = state.withLock { $0.newID() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                guard begin(id, waiter, deadline) else { return }
                var bytes: [UInt8] = []
                bytes.reserveCapacity(Limits.frameHeaderBytes + body.count)
                FrameWriter.append(.request, operation.rawValue, requestID: id, to: &bytes) {
                    $0.append(contentsOf: body)
                }
                connection.send(bytes)
            }
        } onCancel: {
            cancel(id)
        }
    }

    /// Sends a proof, alone or in one request with those of other callers, and waits for its verdict.
    nonisolated(nonsending) func verify(_ call: VerifyCall) async -> Result<Verdict, ServiceError> {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in begin(call, waiter) }
        } onCancel: {
            cancel(call)
        }
        return call.outcome ?? .failure(Link.cancelled)
    }

    /// Lets `waiter` wait. Returns false when it was resumed at once, because the present task is cancelled or the
    /// connection closed.
    private func begin(_ id: UInt64, _ waiter: Waiter, _ deadline: ContinuousClock.Instant) -> Bool {
        let refusal = state.withLock { state -> ServiceError? in
            // `cancel` either waits for the lock and finds the request, or came before, which the task knows.
            if Task.isCancelled { return Link.cancelled }
            if state.isClosed { return Link.unsent }
            let former = state.waiting.updateValue((waiter, deadline), forKey: id)
            precondition(former == nil, "two requests have one identifier")
            expect(deadline, &state)
            return nil
        }
        if let refusal { waiter.resume(returning: .failure(refusal)) }
        return refusal == nil
    }

    private func begin(_ call: VerifyCall, _ waiter: UnsafeContinuation<Void, Never>) {
        guard call.wait(waiter) else { return }
        let packages = state.withLock { state -> [VerifyLine.Package]? in
            guard !state.isClosed else { return nil }
            // It may have been cancelled since; then nobody else would take it from the line.
            guard call.isAwaited else { return [] }
            state.line.append(call, &state.nextID)
            expect(call.deadline, &state)
            return state.takePackages()
        }
        if let packages { send(packages) } else { call.end(.failure(Link.unsent)) }
    }

    private func cancel(_ id: UInt64) {
        let waiting = state.withLock { $0.waiting.removeValue(forKey: id) }
        waiting?.waiter.resume(returning: .failure(Link.cancelled))
    }

    private func cancel(_ call: VerifyCall) {
        if call.end(.failure(Link.cancelled)) { leave([call]) }
    }

    /// Takes calls that have ended without an answer from the line, which may let others leave.
    private func leave(_ calls: [VerifyCall]) {
        guard !calls.isEmpty else { return }
        send(
            state.withLock { state in
                for call in calls { state.line.leave(call) }
                return state.takePackages()
            })
    }

    private func send(_ packages: [VerifyLine.Package]) {
        for package in packages {
            do throws(ServiceError) {
                connection.send(try package.frame())
            } catch {
                finish(package.requestID, .failure(error))
                send(state.withLock { $0.takePackages() })
            }
        }
    }

    static let cancelled = ServiceError(.cancelled, "the request was cancelled")
    static let late = ServiceError(.deadlineExceeded, "the service did not answer in time")
    private static let lost = ServiceError(.connectionLost, "the connection was lost before the answer came")
    private static let unsent = ServiceError(.connectionLost, "the connection was lost before the request was sent")
    private static let silent = ServiceError(
        .connectionLost,
        "the service closed the connection without a byte: it may speak TLS, or it may be no Rootgate service")

    /// Sets the timer unless it is set for an earlier time.
    private func expect(_ deadline: ContinuousClock.Instant, _ state: inout State) {
        if state.alarm.map({ deadline < $0 }) ?? true { setAlarm(deadline, &state) }
    }

    private func setAlarm(_ alarm: ContinuousClock.Instant, _ state: inout State) {
        state.alarm = alarm
        // A caller's deadline may be centuries away. An alarm before the deadline sets the next alarm.
        let left = min(max(.zero, alarm - .now), .seconds(3600)).components
        let nanoseconds = Int(left.seconds) * 1_000_000_000 + Int(left.attoseconds / 1_000_000_000)
        timer.schedule(deadline: .now() + .nanoseconds(nanoseconds), leeway: .milliseconds(5))
    }

    private func expire() {
        let now = ContinuousClock.now
        let (requests, calls) = state.withLock { state in
            let requests = state.waiting.filter { $0.value.deadline <= now }
            for id in requests.keys { state.waiting[id] = nil }
            let calls = state.line.calls.filter(\.isAwaited)
            state.alarm = nil
            let deadlines = state.waiting.values.map(\.deadline) + calls.map(\.deadline).filter { $0 > now }
            if let earliest = deadlines.min() { setAlarm(earliest, &state) }
            return (requests.values, calls.filter { $0.deadline <= now })
        }
        for waiting in requests { waiting.waiter.resume(returning: .failure(Link.late)) }
        leave(calls.filter { $0.end(.failure(Link.late)) })
    }

    // MARK: On the loop's thread

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
        connection.assertOnThread()
        hasReceived.store(true, ordering: .relaxed)
        var frames = FrameReader(buffer.bytes(range), expecting: [.answer, .error])
        while let frame = frames.next() { deliver(frame.header, frame.body) }
        if frames.violation != nil {
            connection.close()
            failAll(Link.isHTTP(buffer.bytes(range)) ? Link.answerOfHTTP : malformedAnswer)
        } else {
            // Behind all answers that have come: what waits leaves together.
            send(state.withLock { $0.takePackages() })
        }
        return Progress(consumed: frames.consumed, nextFrameBytes: frames.nextFrameBytes)
    }

    private static let answerOfHTTP = ServiceError(
        .malformedAnswer, "the answer is one of HTTP: this is the address of pages, and not the service's --listen")

    private static func isHTTP(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: "HTTP/".utf8) }

    private func deliver(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) {
        var result: Result<[UInt8], ServiceError>
        if header.kind == .error {
            do throws(ServiceError) {
                result = .failure(try FrameWriter.decodeError(body))
            } catch {
                result = .failure(error)
            }
            if case .failure(let error) = result, error.code == .shuttingDown {
                isOpen.store(false, ordering: .relaxed)
            }
            // An error about the connection, not about one request, names no operation.
            if header.operation == 0, case .failure(let error) = result {
                connection.close()
                return failAll(error)
            }
        } else {
            result = .success(Array(body))
        }
        finish(header.requestID, result)
    }

    /// Ends a request. It is absent when its deadline has passed or it was cancelled. `takePackages` follows.
    private func finish(_ id: UInt64, _ result: Result<[UInt8], ServiceError>) {
        enum Ended {
            case request(Waiter)
            case proofs([VerifyCall])
            case nothing
        }
        let ended = state.withLock { state -> Ended in
            if case .failure(let error) = result, error.code.refusesWhole {
                let isBusy = error.retryAfter != nil
                if isBusy && state.line.postpone(id) || state.line.split(id, inTurn: isBusy) { return .nothing }
            }
            if let calls = state.line.removeAnswered(id) { return .proofs(calls) }
            return state.waiting.removeValue(forKey: id).map { .request($0.waiter) } ?? .nothing
        }
        switch ended {
        case .request(let waiter): waiter.resume(returning: result)
        case .proofs(let calls): finish(calls, result)
        case .nothing: return
        }
        if !isConnected { closeIfDone() }
    }

    /// Ends a request with single proofs: each caller gets the verdict on its proof.
    private func finish(_ calls: [VerifyCall], _ result: Result<[UInt8], ServiceError>) {
        switch Link.verdicts(result, count: calls.count) {
        case .success(let verdicts): for (call, verdict) in zip(calls, verdicts) { call.end(.success(verdict)) }
        case .failure(let error): for call in calls { call.end(.failure(error)) }
        }
    }

    /// As many verdicts as there were proofs.
    private static func verdicts(
        _ result: Result<[UInt8], ServiceError>, count: Int
    ) -> Result<[Verdict], ServiceError> {
        result.flatMap { answer in
            do throws(ServiceError) {
                let (verdicts, _) = try answer.withRawBytes { body throws(ServiceError) in
                    try VerdictList.decode(body)
                }
                guard verdicts.count == count else { throw malformedAnswer }
                return .success(verdicts)
            } catch {
                return .failure(error)
            }
        }
    }

    var isBusy: Bool { state.withLock { !$0.waiting.isEmpty || !$0.line.isEmpty } }

    func drained() {}

    func closed() {
        connection.assertOnThread()
        timer.cancel()
        // With TLS 1.3 the service's refusal of a client's certificate arrives after the handshake.
        failAll(
            connection.failure.map { ServiceError(.tlsRefused, "the connection to the service failed: \($0)") }
                ?? (hasReceived.load(ordering: .relaxed) ? Link.lost : Link.silent))
    }

    private func failAll(_ error: ServiceError) {
        isOpen.store(false, ordering: .relaxed)
        let (requests, calls) = state.withLock { state in
            defer {
                state.waiting = [:]
                state.line.removeAll()
            }
            state.isClosed = true
            return (state.waiting.values, state.line.calls)
        }
        for waiting in requests { waiting.waiter.resume(returning: .failure(error)) }
        for call in calls { call.end(.failure(error)) }
    }
}

extension ServiceError.Code {
    /// Whether a service has done nothing of a request that it answers with this error, and might have done a part of
    /// it as another request.
    fileprivate var refusesWhole: Bool {
        switch self {
        case .busy, .limitExceeded, .malformedRequest, .roleMissing: true
        default: false
        }
    }
}
