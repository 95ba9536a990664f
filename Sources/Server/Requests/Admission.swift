import Core
import Synchronization
import Wire

/// Counts requests, and refuses new ones during a shutdown.
final class Admission: Sendable {
    static let shuttingDown = ServiceError(.shuttingDown, "the service is shutting down: connect again later")
    static let busy = ServiceError(.busy, "the service is busy: try again later")

    /// Gets a line about each request that is answered with an error.
    private let log: Log
    /// Connections since the start.
    private let connections = Atomic<UInt64>(0)
    /// Requests that are neither answered nor dropped, suspended ones included.
    private let unanswered = Atomic<Int>(0)
    /// Requests that a thread works on or will work on.
    let inFlight = Atomic<Int>(0)
    /// Requests since the start, by operation.
    private let requests = OperationCounts()
    /// Requests that were answered with `busy`.
    let refusals = Atomic<UInt64>(0)
    /// Whether the service is shutting down: it answers what it accepted and accepts nothing new.
    let isDraining = Atomic<Bool>(false)

    init(log: Log = .none) {
        self.log = log
    }

    /// The number of a connection that begins.
    func nextConnection() -> UInt64 { connections.add(1, ordering: .relaxed).newValue }

    /// A request is answered with an error. The line does not repeat what the error says about it, which may name what
    /// the client has sent.
    func failed(_ operation: @autoclosure () -> String, _ request: LogLine.Request, _ error: ServiceError) {
        log(
            error.code == .internalFault ? .error : .debug, "\(operation()) got the error \(error.code.name)",
            request: request)
    }

    /// A connection is closed because of what it has sent.
    func refused(_ request: LogLine.Request, _ error: ServiceError) {
        log(.debug, "closed a connection that sent what is no request: \(error.code.name)", request: request)
    }

    /// Whether every request is answered or dropped.
    var isIdle: Bool { unanswered.load(ordering: .acquiring) == 0 }

    /// Requests since the start, by the operations' stable names.
    var requestCounts: [(name: String, count: UInt64)] { requests.counts }

    /// Requests have arrived. `operation`: `nil` when there is none of their number.
    func began(_ operation: Wire.Operation?, _ count: Int = 1) {
        requests.add(count, to: operation)
        unanswered.add(count, ordering: .relaxed)
        inFlight.add(count, ordering: .relaxed)
    }

    /// Requests that were never suspended are answered.
    func ended(_ count: Int) {
        inFlight.subtract(count, ordering: .relaxed)
        unanswered.subtract(count, ordering: .releasing)
    }

    /// Requests that were counted have not begun.
    func withdrew(_ operation: Wire.Operation, _ count: Int) {
        requests.add(-count, to: operation)
        ended(count)
    }

    /// Counts a transition of a request.
    func count(_ effect: RequestLife.Effect) {
        if effect.inFlight != 0 { inFlight.add(effect.inFlight, ordering: .relaxed) }
        if effect.isEnd { unanswered.subtract(1, ordering: .releasing) }
    }

    /// Throws `shuttingDown` during a shutdown.
    func check() throws(ServiceError) {
        guard !isDraining.load(ordering: .relaxed) else {
            throw Admission.shuttingDown
        }
    }
}
