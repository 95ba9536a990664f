import Core
import Dispatch
import Foundation
import Kernels
import Platform
import RootgateClient
import Server
import Synchronization
import TLS
import Transport

let serveCommand = Command(
    "serve", "run the service", options: serviceOptions
) { arguments in
    // First: whoever sends a signal can't know how far the process has got.
    let signals = TerminationSignals()
    let supervision = try Supervision.take()
    var configuration = try Configuration(arguments)
    try configuration.take(supervision)
    let sandbox = try SandboxChoice(arguments)
    KernelChoice.current = try KernelChoice(arguments)
    let options = OptionsInForce(arguments)
    let choice = try LogChoice(arguments)
    let writer = choice.makeWriter()
    let log = writer.log(showsAddresses: choice.showsAddresses)
    let told = Timers.system.every(milliseconds: Limits.logTellMilliseconds, leeway: 1000) { writer.tellLeftOut() }
    defer {
        told.cancelAndWait()
        writer.tellLeftOut()
    }
    try checkDescriptors(configuration, log)
    signals.beforeEnd { log(.info, "ended by a signal before it listened") }
    // Where the kernel encrypts, sending to a closed connection would raise this signal.
    signal(SIGPIPE, SIG_IGN)
    let supervisor = Supervisor(at: supervision.address, log: log)
    let rules = configuration.sandboxRules
    let service = try Service(
        configuration, log: log, onStorageLoss: { signals.loseStorage() }, onOwnProof: { supervisor.isAlive() },
        onWait: StartExtension { seconds, status in supervisor.isStarting(for: seconds, status) }
    ) { () throws(StartupFailure) in
        try sandbox.enter(rules, log)
        // It answers from now on.
        signals.serves()
    }
    // Who reads that the service listens may send the signal at once.
    signals.onHangUp {
        supervisor.reloads {
            service.reload()
            options?.reload(log) { times, level in
                service.change(times)
                writer.level = level
            }
        }
    }
    supervisor.isReady(announce(service, configuration))
    await signals.first()
    if signals.isStorageLost { return end(service, supervisor, log) }
    let shutdown = "shutting down: waiting up to \(service.drainSeconds) s for accepted requests"
    log(.info, "\(shutdown); a second signal forces it")
    supervisor.stops(shutdown)
    switch service.shutDown(isForced: { signals.count > 1 }) {
    case .drained: return .success
    case .forced:
        log(.warning, "the shutdown was forced: requests were left unanswered")
        return .forced
    }
}

/// Raises the limit of open files, and makes room in the system's table for all connections. Throws when the limit is
/// too low for a service, and says so when it is too low for as many connections, handshakes and visitors as may be.
private func checkDescriptors(_ configuration: Configuration, _ log: Log) throws(StartupFailure) {
    let descriptors = System.raiseDescriptorLimit()
    guard descriptors >= configuration.descriptorsMin else {
        throw .outOfResources(
            "it may have \(descriptors) open files, and needs \(configuration.descriptorsMin) at least (ulimit -n)")
    }
    let needed = configuration.descriptorsNeeded
    if descriptors < needed {
        let bounds = ConnectionBounds(configuration, descriptors: descriptors)
        log(
            .warning,
            "the system allows this process \(descriptors) open files, so it has places for \(bounds.places) "
                + "connections (--connections-max is \(configuration.connectionsMax))"
                + (configuration.tls == nil ? "" : ", begins \(bounds.handshakes) handshakes at once")
                + ", and tells \(bounds.leaving) others why they are closed: raise that to \(needed) (ulimit -n), or "
                + "lower --connections-max")
    }
    System.growDescriptorTable(to: min(descriptors, needed))
}

/// Ends a service that has lost its storage.
private func end(_ service: Service, _ supervisor: Supervisor, _ log: Log) -> ExitCode {
    let reason = "ending, because only another process can open the storage again"
    log(.critical, reason)
    supervisor.stops(reason)
    // The answers that say so may still leave.
    let deadline = ContinuousClock.now + .seconds(1)
    _ = service.shutDown(isForced: { ContinuousClock.now >= deadline })
    return .storageLost
}

/// Prints where the service listens, and returns that for a supervisor.
private func announce(_ service: Service, _ configuration: Configuration) -> String {
    let isEncrypted = configuration.tls != nil
    let addresses = service.endpoints.map { (isEncrypted && $0.path == nil ? tlsScheme : "") + $0.description }
    let listening = "listening on \(addresses.joined(separator: ", "))"
    printNow("rootgate \(Service.version) is \(listening)")
    for endpoint in service.associationEndpoints {
        printNow("the association of apps and links is at http://\(endpoint)\(Service.associationPath)")
    }
    let pages = Service.operatorPaths + (configuration.showsRecords ? Service.recordPaths : [])
    for endpoint in service.operatorEndpoints {
        let scheme = endpoint.isLoopback ? "http" : "https"
        let base = endpoint.path == nil ? "\(scheme)://\(endpoint)" : "\(endpoint)"
        printNow("the operator's pages \(pages.joined(separator: ", ")) are at \(base)")
    }
    return listening
}

/// Counts SIGTERM and SIGINT, which no longer end the process. SIGHUP calls a function instead.
///
/// Only a start that goes on for a second after the first of them is ended, and at once by the second one: it may be
/// waiting for etcd or for a snapshot. It has answered nobody, and storages are made for ends at any moment.
final class TerminationSignals: Sendable {
    private let received = Atomic<Int>(0)
    private let isServing = Atomic<Bool>(false)
    private let lostStorage = Atomic<Bool>(false)
    private let hangUp = Lock(HangUp())
    private let lastWords = Lock(LastWords())
    private let queue = DispatchQueue(label: "rootgate signals")
    private let arrivals: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    /// What is called before a start is ended.
    private struct LastWords {
        var body: (@Sendable () -> Void)?
    }

    /// What SIGHUP calls.
    private struct HangUp {
        var body: (@Sendable () -> Void)?
        /// Whether the signal came before there was anything to call.
        var hasCome = false
    }

    init() {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        arrivals = stream
        self.continuation = continuation
        // It asks for what the process will read now anyway, and would end it.
        signal(SIGHUP, SIG_IGN)
        CaughtSignals.begin([SIGTERM, SIGINT, SIGHUP], on: queue) { [self] number in
            if number == SIGHUP {
                let body = hangUp.withLock { hangUp in
                    hangUp.hasCome = hangUp.body == nil
                    return hangUp.body
                }
                body?()
                return
            }
            let isFirst = received.add(1, ordering: .relaxed).oldValue == 0
            continuation.yield()
            let grace = DispatchTimeInterval.milliseconds(isFirst ? Limits.startGraceMilliseconds : 0)
            queue.asyncAfter(deadline: .now() + grace) { [self] in
                guard !isServing.load(ordering: .acquiring) else { return }
                lastWords.withLock(\.body)?()
                _exit(ExitCode.success.rawValue)
            }
        }
    }

    /// The start is over.
    func serves() { isServing.store(true, ordering: .releasing) }

    /// From now on `body` is called before a start is ended.
    func beforeEnd(_ body: @escaping @Sendable () -> Void) { lastWords.withLock { $0.body = body } }

    /// From now on SIGHUP calls `body`, on a queue. If it has come already, that counts.
    func onHangUp(_ body: @escaping @Sendable () -> Void) {
        let hasCome = hangUp.withLock { hangUp in
            hangUp.body = body
            return hangUp.hasCome
        }
        if hasCome { queue.async(execute: body) }
    }

    /// Ends the wait as a signal does.
    func loseStorage() {
        lostStorage.store(true, ordering: .releasing)
        continuation.yield()
    }

    var isStorageLost: Bool { lostStorage.load(ordering: .acquiring) }

    var count: Int { received.load(ordering: .relaxed) }

    /// Returns when the first signal has arrived.
    func first() async {
        for await _ in arrivals { return }
    }
}
