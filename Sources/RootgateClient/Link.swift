import Core
import Dispatch
import Synchronization
import Transport
import Wire

/// One connection with the requests that wait for answers on it.
final class Link: ConnectionHandler {
    private typealias Waiter = CheckedContinuation<Result<[UInt8], ServiceError>, Never>

    private struct Waiting {
        let waiter: Waiter
        let deadline: ContinuousClock.Instant
    }

    private struct State {
        var nextID: UInt64 = 1
        var waiting: [UInt64: Waiting] = [:]
        /// Requests that were cancelled before they began to wait.
        var cancelled: Set<UInt64> = []
        var isClosed = false
        /// The time that the timer is set for, which is no later than the earliest deadline. Most requests are answered
        /// long before their deadline, so the timer is rarely set again.
        var alarm: ContinuousClock.Instant?
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
        let id = state.withLock { state in
            defer { state.nextID += 1 }
            return state.nextID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let refusal = state.withLock { state -> ServiceError? in
                    if state.cancelled.remove(id) != nil { return Link.cancelled }
                    if state.isClosed { return Link.lost }
                    let former = state.waiting.updateValue(Waiting(waiter: waiter, deadline: deadline), forKey: id)
                    precondition(former == nil, "two requests have one identifier")
                    if state.alarm.map({ deadline < $0 }) ?? true { setAlarm(deadline, &state) }
                    return nil
                }
                if let refusal { return waiter.resume(returning: .failure(refusal)) }
                var bytes: [UInt8] = []
                bytes.reserveCapacity(Limits.frameHeaderBytes + body.count)
                FrameWriter.append(.request, operation.rawValue, requestID: id, to: &bytes) {
                    $0.append(contentsOf: body)
                }
                connection.send(bytes)
            }
        } onCancel: {
            let waiting = state.withLock { state -> Waiting? in
                if let waiting = state.waiting.removeValue(forKey: id) { return waiting }
                state.cancelled.insert(id)
                return nil
            }
            waiting?.waiter.resume(returning: .failure(Link.cancelled))
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
        let expired = state.withLock { state in
            let expired = state.waiting.filter { $0.value.deadline <= now }
            for id in expired.keys { state.waiting[id] = nil }
            state.alarm = nil
            if let earliest = state.waiting.values.map(\.deadline).min() { setAlarm(earliest, &state) }
            return expired
        }
        for waiting in expired.values {
            waiting.waiter.resume(
                returning: .failure(ServiceError(.deadlineExceeded, "the service did not answer in time")))
        }
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
        // The request is absent when its deadline has passed or it was cancelled.
        let waiting = state.withLock { $0.waiting.removeValue(forKey: header.requestID) }
        waiting?.waiter.resume(returning: result)
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
            return state.waiting
        }
        for waiting in all.values { waiting.waiter.resume(returning: .failure(error)) }
    }
}
