import Core
import Dispatch
import Synchronization
import Transport
import Wire

/// One connection with the requests that wait for answers on it.
final class Link: ConnectionHandler {
    /// Who waits: for the body of an answer, or for the verdict on one proof.
    private enum Waiter {
        case body(CheckedContinuation<Result<[UInt8], ServiceError>, Never>)
        case verdict(CheckedContinuation<Result<Verdict, ServiceError>, Never>)

        func fail(_ error: ServiceError) {
            switch self {
            case .body(let waiter): waiter.resume(returning: .failure(error))
            case .verdict(let waiter): waiter.resume(returning: .failure(error))
            }
        }
    }

    private struct Waiting {
        let waiter: Waiter
        let deadline: ContinuousClock.Instant
        /// The request that a single proof was last sent in; `nil` before it is sent.
        var package: UInt64?
    }

    private struct State {
        var nextID: UInt64 = 1
        var waiting: [UInt64: Waiting] = [:]
        /// The single proofs among them.
        var line = VerifyLine()
        /// Requests that were cancelled before they began to wait.
        var cancelled: Set<UInt64> = []
        var isClosed = false
        /// The time that the timer is set for, which is no later than the earliest deadline. Most requests are answered
        /// long before their deadline, so the timer is rarely set again.
        var alarm: ContinuousClock.Instant?

        mutating func newID() -> UInt64 {
            defer { nextID += 1 }
            return nextID
        }

        /// The requests with single proofs that are to be sent now.
        mutating func takePackages() -> [VerifyLine.Package] {
            let packages = line.take(&nextID) { waiting[$0.id] != nil }
            for package in packages {
                for call in package.calls { waiting[call.id]?.package = package.requestID }
            }
            return packages
        }

        /// Removes a caller before the answer has come.
        mutating func giveUp(_ id: UInt64) -> Waiting? {
            guard let gone = waiting.removeValue(forKey: id) else { return nil }
            if case .verdict = gone.waiter { line.leave(gone.package) }
            return gone
        }
    }

    private let connection: Connection
    private let state = Mutex(State())
    /// Whether the service has sent anything on this connection.
    private let hasReceived = Atomic<Bool>(false)
    /// Set in `init` and cancelled in `deinit`; the reference never changes. Dispatch's sources may be used from any
    /// thread.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer

    init(_ connection: Connection) {
        self.connection = connection
        timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { [weak self] in self?.expire() }
        timer.resume()
    }

    deinit {
        timer.cancel()
    }

    var isConnected: Bool { state.withLock { !$0.isClosed } }

    func close() {
        connection.close()
    }

    /// Sends a request and waits for the body of its answer.
    func request(
        _ operation: Operation, body: [UInt8], deadline: ContinuousClock.Instant
    ) async -> Result<[UInt8], ServiceError> {
        let id = state.withLock { $0.newID() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                guard begin(id, .body(waiter), deadline, { _ in }) else { return }
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

    /// Sends a proof, alone or in one request with those of other callers, and waits for its verdict. `proof`: what
    /// `ProofBatch.encoded` has made.
    func verify(
        _ proof: [UInt8], in collaboration: CollaborationIdentifier, _ kind: VerifyLine.Kind,
        deadline: ContinuousClock.Instant
    ) async -> Result<Verdict, ServiceError> {
        let id = state.withLock { $0.newID() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                var packages: [VerifyLine.Package] = []
                let hasBegun = begin(id, .verdict(waiter), deadline) { state in
                    state.line.append(
                        VerifyLine.Call(id: id, kind: kind, collaboration: collaboration, proof: proof))
                    packages = state.takePackages()
                }
                if hasBegun { send(packages) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    /// Lets `waiter` wait. Returns false when it was resumed at once, because the request is cancelled or the
    /// connection closed; then `enter` was not called.
    private func begin(
        _ id: UInt64, _ waiter: Waiter, _ deadline: ContinuousClock.Instant, _ enter: (inout State) -> Void
    ) -> Bool {
        let refusal = state.withLock { state -> ServiceError? in
            if state.cancelled.remove(id) != nil { return Link.cancelled }
            if state.isClosed { return Link.lost }
            let former = state.waiting.updateValue(Waiting(waiter: waiter, deadline: deadline), forKey: id)
            precondition(former == nil, "two requests have one identifier")
            if state.alarm.map({ deadline < $0 }) ?? true { setAlarm(deadline, &state) }
            enter(&state)
            return nil
        }
        if let refusal { waiter.fail(refusal) }
        return refusal == nil
    }

    private func cancel(_ id: UInt64) {
        let (waiting, packages) = state.withLock { state -> (Waiting?, [VerifyLine.Package]) in
            guard let waiting = state.giveUp(id) else {
                state.cancelled.insert(id)
                return (nil, [])
            }
            return (waiting, state.takePackages())
        }
        waiting?.waiter.fail(Link.cancelled)
        send(packages)
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

    private static let cancelled = ServiceError(.cancelled, "the request was cancelled")
    private static let lost = ServiceError(.connectionLost, "the connection was lost before the answer came")
    private static let silent = ServiceError(
        .connectionLost,
        "the service closed the connection without a byte: it may speak TLS, or it may be no Rootgate service")

    private func setAlarm(_ alarm: ContinuousClock.Instant, _ state: inout State) {
        state.alarm = alarm
        // A caller's deadline may be centuries away. An alarm before the deadline sets the next alarm.
        let left = min(max(.zero, alarm - .now), .seconds(3600)).components
        let nanoseconds = Int(left.seconds) * 1_000_000_000 + Int(left.attoseconds / 1_000_000_000)
        timer.schedule(deadline: .now() + .nanoseconds(nanoseconds), leeway: .milliseconds(5))
    }

    private func expire() {
        let now = ContinuousClock.now
        let (expired, packages) = state.withLock { state in
            let expired = state.waiting.filter { $0.value.deadline <= now }
            for id in expired.keys { _ = state.giveUp(id) }
            state.alarm = nil
            if let earliest = state.waiting.values.map(\.deadline).min() { setAlarm(earliest, &state) }
            return (expired, state.takePackages())
        }
        for waiting in expired.values {
            waiting.waiter.fail(ServiceError(.deadlineExceeded, "the service did not answer in time"))
        }
        send(packages)
    }

    // MARK: On the loop's thread

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
        connection.assertOnThread()
        hasReceived.store(true, ordering: .relaxed)
        var frames = FrameReader(buffer.bytes(range), expecting: [.answer, .error])
        while let frame = frames.next() { deliver(frame.header, frame.body) }
        if frames.violation != nil {
            connection.close()
            failAll(malformedAnswer)
        } else {
            // Behind all answers that have come: what waits leaves together.
            send(state.withLock { $0.takePackages() })
        }
        return Progress(consumed: frames.consumed, nextFrameBytes: frames.nextFrameBytes)
    }

    private func deliver(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) {
        var result: Result<[UInt8], ServiceError>
        if header.kind == .error {
            do throws(ServiceError) {
                result = .failure(try FrameWriter.decodeError(body))
            } catch {
                result = .failure(error)
            }
            // An error about the connection, not about one request, names no operation.
            if header.operation == 0, case .failure(let error) = result { return failAll(error) }
        } else {
            result = .success(Array(body))
        }
        finish(header.requestID, result)
    }

    /// Ends a request. It is absent when its deadline has passed or it was cancelled. `takePackages` follows.
    private func finish(_ id: UInt64, _ result: Result<[UInt8], ServiceError>) {
        enum Ended {
            case request(CheckedContinuation<Result<[UInt8], ServiceError>, Never>)
            case proofs([VerifyLine.Call])
            case nothing
        }
        let ended = state.withLock { state -> Ended in
            if case .failure(let error) = result, error.code.refusesWhole,
                state.line.split(id, inTurn: error.retryAfter != nil)
            {
                return .nothing
            }
            if let calls = state.line.removeAnswered(id) { return .proofs(calls) }
            // A single proof's identifier is no request's, so that no answer may name it.
            guard case .body(let waiter) = state.waiting[id]?.waiter else { return .nothing }
            state.waiting[id] = nil
            return .request(waiter)
        }
        switch ended {
        case .request(let waiter): waiter.resume(returning: result)
        case .proofs(let calls): finish(calls, result)
        case .nothing: return
        }
    }

    /// Ends a request with single proofs: each caller gets the verdict on its proof.
    private func finish(_ calls: [VerifyLine.Call], _ result: Result<[UInt8], ServiceError>) {
        let verdicts = Link.verdicts(result, count: calls.count)
        let waiting = state.withLock { state in calls.map { state.waiting.removeValue(forKey: $0.id) } }
        for (position, waiting) in waiting.enumerated() {
            guard case .verdict(let waiter) = waiting?.waiter else { continue }
            waiter.resume(returning: verdicts.map { $0[position] })
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

    var isBusy: Bool { state.withLock { !$0.waiting.isEmpty } }

    func drained() {}

    func closed() {
        connection.assertOnThread()
        // With TLS 1.3 the service's refusal of a client's certificate arrives after the handshake.
        failAll(
            connection.failure.map { ServiceError(.tlsRefused, "the connection to the service failed: \($0)") }
                ?? (hasReceived.load(ordering: .relaxed) ? Link.lost : Link.silent))
    }

    private func failAll(_ error: ServiceError) {
        let all = state.withLock { state in
            defer { state.waiting = [:] }
            state.isClosed = true
            state.line.removeAll()
            return state.waiting
        }
        for waiting in all.values { waiting.waiter.fail(error) }
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
