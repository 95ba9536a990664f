import Core
import Dispatch
import Foundation
import Platform
import Principals
import Synchronization
import TLS
import Transport
import Wire

/// Keeps at most one link to the service, or one attempt to connect, at any time.
final class Connector: Sendable {
    private enum Phase {
        case idle
        case connecting(Task<Result<Link, ServiceError>, Never>)
        case connected(Link)
        case closed
    }

    private let dialer: Dialer
    /// Presented on every connection before anything else; `nil`: there is none.
    private let key: APIKey?
    private let connectTimeout: Duration
    private let connectMilliseconds: CInt
    private let loop: EventLoop
    private let phase = Mutex(Phase.idle)

    init(_ dialer: Dialer, key: APIKey?, connectTimeout: Duration) throws(ServiceError) {
        self.dialer = dialer
        self.key = key
        self.connectTimeout = connectTimeout
        connectMilliseconds = CInt(clamping: Int64(min(connectTimeout, .seconds(86_400)) / .milliseconds(1)))
        loop = try .startedForClient(name: "rootgate client")
    }

    var isClosed: Bool {
        phase.withLock { if case .closed = $0 { true } else { false } }
    }

    /// The present link; `nil` when `link` has to connect first.
    var present: Link? {
        phase.withLock { if case .connected(let link) = $0, link.isConnected { link } else { nil } }
    }

    /// The present link, or the result of connecting. Waits for an attempt that is under way, or begins one.
    func link() async -> Result<Link, ServiceError> {
        enum Step {
            case done(Result<Link, ServiceError>)
            case wait(Task<Result<Link, ServiceError>, Never>)
        }
        let step = phase.withLock { phase -> Step in
            switch phase {
            case .connected(let link) where link.isConnected: return .done(.success(link))
            case .connecting(let task): return .wait(task)
            case .closed: return .done(.failure(ServiceError(.connectionLost, "the client is closed")))
            case .idle, .connected:
                let task = Task { await self.connect() }
                phase = .connecting(task)
                return .wait(task)
            }
        }
        switch step {
        case .done(let result): return result
        case .wait(let task): return await task.value
        }
    }

    private func connect() async -> Result<Link, ServiceError> {
        var result = await dial()
        if let key, case .success(let link) = result, let refusal = await present(key, on: link) {
            link.close()
            result = .failure(refusal)
        }
        phase.withLock { phase in
            guard case .connecting = phase else {
                if case .success(let link) = result { link.close() }
                return
            }
            phase = if case .success(let link) = result { .connected(link) } else { .idle }
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

    private func dial() async -> Result<Link, ServiceError> {
        await withCheckedContinuation { (done: CheckedContinuation<Result<Link, ServiceError>, Never>) in
            // Connecting and resolving names block, so they must not run on a thread of Swift's concurrency pool.
            DispatchQueue.global().async { [self] in
                do throws(ServiceError) {
                    let stream = try dialer.connect(milliseconds: connectMilliseconds)
                    Connection.start(stream, on: loop) { connection in
                        let link = Link(connection)
                        done.resume(returning: .success(link))
                        return link
                    }
                } catch {
                    done.resume(returning: .failure(error))
                }
            }
        }
    }

    func close() {
        let wasClosed = phase.withLock { phase in
            defer { phase = .closed }
            if case .closed = phase { return true }
            return false
        }
        guard !wasClosed else { return }
        // Stopping the loop waits for its thread, and this thread may be the loop's own.
        let loop = loop
        DispatchQueue.global().async { loop.stop() }
    }
}
