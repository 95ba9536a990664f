import Core
import Dispatch
import Foundation
import Platform
import Principals
import TLS
import Transport
import Wire

/// Keeps at most one link to the service, or one attempt to connect, at any time.
final class Connector: Sendable {
    private typealias Waiter = CheckedContinuation<Result<Link, ServiceError>, Never>

    private enum Phase {
        case idle
        /// Who waits for the attempt, by numbers.
        case connecting([UInt64: Waiter])
        case connected(Link)
        case closed
    }

    private struct State {
        var phase = Phase.idle
        var nextNumber: UInt64 = 0
        /// The address that the next attempt begins with.
        var address = 0

        /// Removes one who waits.
        mutating func remove(_ number: UInt64) -> Waiter? {
            guard case .connecting(var waiting) = phase else { return nil }
            defer { phase = .connecting(waiting) }
            return waiting.removeValue(forKey: number)
        }
    }

    /// One for each address of the service.
    private let dialers: [Dialer]
    /// Presented on every connection before anything else; `nil`: there is none.
    private let key: APIKey?
    private let connectTimeout: Duration
    private let connectMilliseconds: CInt
    private let loop: EventLoop
    private let state = Lock(State())

    /// `dialers`: one at least.
    init(_ dialers: [Dialer], key: APIKey?, connectTimeout: Duration) throws(ServiceError) {
        self.dialers = dialers
        self.key = key
        self.connectTimeout = connectTimeout
        connectMilliseconds = CInt(clamping: Int64(min(connectTimeout, .seconds(86_400)) / .milliseconds(1)))
        loop = try .startedForClient(name: "rootgate client")
    }

    var isClosed: Bool {
        state.withLock { if case .closed = $0.phase { true } else { false } }
    }

    /// The present link; `nil` when `link` has to connect first.
    var present: Link? {
        state.withLock { if case .connected(let link) = $0.phase, link.isConnected { link } else { nil } }
    }

    /// The present link, or the result of connecting. Waits for an attempt that is under way, or begins one, but not
    /// beyond `deadline`, and not when the task is cancelled: the attempt then goes on for others.
    func link(until deadline: ContinuousClock.Instant) async -> Result<Link, ServiceError> {
        let number = state.withLock { state in
            defer { state.nextNumber += 1 }
            return state.nextNumber
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { wait($0, as: number, until: deadline) }
        } onCancel: {
            end(number, Link.cancelled)
        }
    }

    /// Sends no more requests over a link, so that the next ones go to another address. Returns false, and changes
    /// nothing, when there is no other one.
    func leave(_ link: Link) -> Bool {
        guard dialers.count > 1 else { return false }
        link.retire()
        return true
    }

    private func wait(_ waiter: Waiter, as number: UInt64, until deadline: ContinuousClock.Instant) {
        enum Step {
            case done(Result<Link, ServiceError>)
            case waits(begins: Bool)
        }
        let step = state.withLock { state -> Step in
            // `end` either waits for the lock and finds the waiter, or came before, which the task knows.
            if Task.isCancelled { return .done(.failure(Link.cancelled)) }
            switch state.phase {
            case .connected(let link) where link.isConnected: return .done(.success(link))
            case .closed: return .done(.failure(Connector.closed))
            case .connecting(var waiting):
                waiting[number] = waiter
                state.phase = .connecting(waiting)
                return .waits(begins: false)
            case .idle, .connected:
                // The address of a connection that has ended comes last.
                if case .connected = state.phase { state.address = (state.address + 1) % dialers.count }
                state.phase = .connecting([number: waiter])
                return .waits(begins: true)
            }
        }
        switch step {
        case .done(let result): waiter.resume(returning: result)
        case .waits(let begins):
            let left = min(max(.zero, deadline - .now), .seconds(86_400)) / .milliseconds(1)
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(left.rounded(.up)))) {
                [weak self] in self?.end(number, Link.late)
            }
            if begins { Task { await self.connect() } }
        }
    }

    /// Lets one who waits do so no longer.
    private func end(_ number: UInt64, _ error: ServiceError) {
        state.withLock { $0.remove(number) }?.resume(returning: .failure(error))
    }

    /// Connects to the first address that lets it, from the one that was used last.
    private func connect() async {
        let first = state.withLock { $0.address }
        var result: Result<Link, ServiceError> = .failure(Connector.closed)
        for number in 0..<dialers.count {
            let address = (first + number) % dialers.count
            state.withLock { $0.address = address }
            result = await attempt(dialers[address])
            // Who refuses the key refuses it at every address.
            if case .failure(let error) = result, error.code != .keyRefused, !isClosed { continue }
            break
        }
        if case .failure = result { state.withLock { $0.address = (first + 1) % dialers.count } }
        let waiting = state.withLock { state -> [UInt64: Waiter] in
            guard case .connecting(let waiting) = state.phase else {
                if case .success(let link) = result { link.close() }
                return [:]
            }
            state.phase = if case .success(let link) = result { .connected(link) } else { .idle }
            return waiting
        }
        for waiter in waiting.values { waiter.resume(returning: result) }
    }

    private func attempt(_ dialer: Dialer) async -> Result<Link, ServiceError> {
        let result = await dial(dialer)
        if let key, case .success(let link) = result, let refusal = await present(key, on: link) {
            link.close()
            return .failure(refusal)
        }
        return result
    }

    /// Says hello with the key. Returns the error that refused it.
    private func present(_ key: APIKey, on link: Link) async -> ServiceError? {
        var body: [UInt8] = []
        Request.hello(minimum: protocolVersion, maximum: protocolVersion, key: Array(key.text.utf8)).append(to: &body)
        switch await link.request(.hello, body: body, deadline: ContinuousClock.now + connectTimeout) {
        case .success: return nil
        case .failure(let error): return error
        }
    }

    private func dial(_ dialer: Dialer) async -> Result<Link, ServiceError> {
        await withCheckedContinuation { (done: CheckedContinuation<Result<Link, ServiceError>, Never>) in
            // Connecting and resolving names block, so they must not run on a thread of Swift's concurrency pool.
            DispatchQueue.global().async { [self] in
                do throws(ServiceError) {
                    let stream = try dialer.connect(milliseconds: connectMilliseconds)
                    let isTaken = Connection.start(stream, on: loop) { connection in
                        let link = Link(connection)
                        done.resume(returning: .success(link))
                        return link
                    }
                    if !isTaken { done.resume(returning: .failure(Connector.closed)) }
                } catch {
                    done.resume(returning: .failure(error))
                }
            }
        }
    }

    private static let closed = ServiceError(.connectionLost, "the client is closed")

    func close() {
        let waiting = state.withLock { state -> [UInt64: Waiter]? in
            defer { state.phase = .closed }
            return switch state.phase {
            case .closed: nil
            case .connecting(let waiting): waiting
            case .idle, .connected: [:]
            }
        }
        guard let waiting else { return }
        for waiter in waiting.values { waiter.resume(returning: .failure(Connector.closed)) }
        // Stopping the loop waits for its thread, and this thread may be the loop's own. It ends its connections, also
        // one that is made meanwhile.
        let loop = loop
        DispatchQueue.global().async { loop.stop() }
    }
}
