import Core
import Foundation
import Platform
import Synchronization
import TLS
import Transport
import Verification
import Wire

/// The service's listeners and event loops.
final class Sockets: Sendable {
    let endpoints: [Endpoint]
    /// The addresses that speak plain text although the others speak TLS.
    let plainEndpoints: [Endpoint]
    /// Serves the association's page; `nil` when it is not served.
    private let association: HTTPServer?
    /// Serves the operator's pages on this machine; `nil` when they are not served.
    private let operations: HTTPServer?
    /// Serves them to other machines, which take no place, memory or thread from this one; `nil` when it does not.
    private let operationsElsewhere: (server: HTTPServer, tls: ServerTLS)?
    /// The addresses of the operator's pages; empty when they are not served.
    let operatorEndpoints: [Endpoint]
    /// The memory of received frames, requests in work and unread answers.
    let memory: MemoryBudget
    private let listeners: [Listener]
    private let plainListeners: [Listener]
    private let loops: [EventLoop]
    /// `nil` when clients speak plain text.
    private let tls: (server: ServerTLS, handshakes: HandshakeLoop)?
    private let nextLoop = Atomic<Int>(0)
    private let connections = Atomic<Int>(0)

    /// Listens at every address of the configuration. Accepts no connection yet. `log` gets lines about certificates
    /// and handshakes.
    ///
    /// Throws when the system does not let it listen at an address, when a certificate can't be used, or when there are
    /// no descriptors for the event loops.
    init(
        _ configuration: Configuration, _ clock: MonotonicClock, _ makeLoop: EventLoop.Maker,
        log: Log
    ) throws(StartupFailure) {
        let bounds = ConnectionBounds(configuration)
        tls = try configuration.tls.map { settings throws(StartupFailure) in
            try Sockets.makeTLS(settings, bounds.handshakes, clock, log)
        }
        memory = MemoryBudget(bytesMax: max(configuration.requestBytesMax, Limits.requestMemoryBytesMin))
        let timeouts = configuration.times.timeouts
        do throws(SystemFailure) {
            var loops: [EventLoop] = []
            for _ in 0..<max(1, configuration.workers) {
                loops.append(try makeLoop(memory, timeouts, clock))
            }
            self.loops = loops
        } catch {
            throw StartupFailure.outOfResources("\(error)")
        }
        let mode = configuration.listenMode
        let inherited = configuration.inherited
        var opened: [Listener] = []
        do throws(StartupFailure) {
            listeners = try (inherited[.clients] ?? []) + Sockets.listen(at: configuration.endpoints, mode)
            opened += listeners
            plainListeners = try Sockets.listen(at: configuration.plainEndpoints, mode)
            opened += plainListeners
            let place = [configuration.associationEndpoint].compactMap { $0 }
            let associations = try (inherited[.association] ?? []) + Sockets.listen(at: place, mode)
            opened += associations
            association =
                associations.isEmpty
                ? nil
                : try HTTPServer(
                    "rootgate association", on: associations, clock, log: log, visitorsMax: bounds.visitors)
            let operators =
                try (inherited[.operators] ?? []) + Sockets.listen(at: configuration.operatorEndpoints, mode)
            opened += operators
            operatorEndpoints = operators.map(\.endpoint)
            // The address decides to which it was bound: a name can lead anywhere.
            let (here, elsewhere) = (
                operators.filter(\.endpoint.isLoopback), operators.filter { !$0.endpoint.isLoopback }
            )
            operations =
                here.isEmpty
                ? nil
                : try HTTPServer(
                    "rootgate operator", on: here, clock, log: log, visitorsMax: bounds.visitors,
                    keepingDescriptors: Limits.descriptorsKeptFromOperators)
            operationsElsewhere = try Sockets.pagesElsewhere(
                on: elsewhere, configuration.tls, bounds.visitors, clock, log)
        } catch {
            for listener in opened { listener.close() }
            throw error
        }
        endpoints = listeners.map(\.endpoint)
        plainEndpoints = plainListeners.map(\.endpoint)
    }

    /// The addresses that serve the association's page; empty when it is not served.
    var associationEndpoints: [Endpoint] { association?.endpoints ?? [] }

    private static func makeTLS(
        _ settings: ServerTLSSettings, _ handshakesMax: Int, _ clock: MonotonicClock, _ log: Log
    ) throws(StartupFailure) -> (server: ServerTLS, handshakes: HandshakeLoop) {
        let server: ServerTLS
        do throws(TLSFailure) {
            server = try ServerTLS(settings, log: log)
        } catch {
            throw StartupFailure.certificates(error.description)
        }
        do throws(SystemFailure) {
            var bounds = HandshakeLoop.Bounds()
            bounds.unfinishedMax = handshakesMax
            return (server, try HandshakeLoop(server, bounds: bounds, clock: clock, log: log))
        } catch {
            throw StartupFailure.outOfResources("\(error)")
        }
    }

    /// The server of the operator's pages for other machines; `nil` when there is no listener. The log gets no lines
    /// about the files of certificates: those of the clients' TLS say the same.
    private static func pagesElsewhere(
        on listeners: [Listener], _ settings: ServerTLSSettings?, _ visitorsMax: Int, _ clock: MonotonicClock,
        _ log: Log
    ) throws(StartupFailure) -> (server: HTTPServer, tls: ServerTLS)? {
        guard let first = listeners.first else { return nil }
        guard let settings else { throw StartupFailure.openOperator(first.endpoint) }
        let tls: ServerTLS
        do throws(TLSFailure) {
            tls = try ServerTLS(settings, for: .http)
        } catch {
            throw StartupFailure.certificates(error.description)
        }
        let server = try HTTPServer(
            "rootgate operator", on: listeners, tls: tls, clock, log: log, visitorsMax: visitorsMax)
        return (server, tls)
    }

    /// Listens at all of the addresses, or at none.
    static func listen(at endpoints: [Endpoint], _ mode: UInt32) throws(StartupFailure) -> [Listener] {
        var listeners: [Listener] = []
        for endpoint in endpoints {
            do throws(SystemFailure) {
                listeners += try Socket.listen(on: endpoint, mode: mode)
            } catch {
                for listener in listeners { listener.close() }
                throw error.number == EADDRINUSE
                    ? StartupFailure.portTaken(endpoint) : StartupFailure.cannotListen(endpoint, error)
            }
        }
        return listeners
    }

    /// Bytes of answers that wait to be sent.
    var unsentBytes: Int { loops.reduce(0) { $0 + $1.unsentBytes.load(ordering: .relaxed) } }

    /// Starts the threads and accepts connections. The threads are also the workers of the pipeline's pool.
    ///
    /// Throws `internalFault` when a worker can't get its memory; then no thread was started, and all listeners are
    /// closed.
    func start(
        serving pipeline: Pipeline, _ site: AssociationSite?, _ places: Places,
        log: Log
    ) throws(ServiceError) {
        var workers: [PoolWorker] = []
        do throws(ServiceError) {
            for loop in loops { workers.append(try pipeline.pool.attachWorker { [weak loop] in loop?.wake() }) }
        } catch {
            closeListeners()
            throw error
        }
        for (number, (loop, worker)) in zip(loops, workers).enumerated() {
            loop.start(
                name: "rootgate loop \(number)",
                work: EventLoop.Work(perform: { worker.work() }, awoke: { worker.awoke() }))
        }
        tls?.handshakes.start()
        for (listeners, tls) in [(listeners, tls), (plainListeners, nil)] {
            for listener in listeners {
                loops[0].listen(on: listener.descriptor) { [self] descriptor in
                    // Nothing leaves the machine over a local socket, so it speaks plain text.
                    guard let handshakes = tls?.handshakes, listener.endpoint.path == nil else {
                        return serve(PlainStream(descriptor), of: Holder(of: descriptor), pipeline, places)
                    }
                    handshakes.begin(descriptor) { [self] stream in
                        serve(stream, of: Holder(of: stream.descriptor), pipeline, places)
                    }
                } refuse: { failure in
                    log(.warning, "can't accept connections for now: \(failure)")
                }
            }
        }
        if let site { association?.start(serving: { _, _ in site }, log: log) }
    }

    /// Begins to find out how the service is, if anybody wants to know, and to serve the operator's pages, if there are
    /// addresses for them: until `stop`, also during a shutdown. `onOwnProof`: see `ServiceWatch`.
    func beginWatch(
        _ configuration: Configuration, _ pipeline: Pipeline, _ clock: MonotonicClock,
        _ date: @escaping @Sendable () -> Date, _ random: RandomSource, _ timers: Timers,
        onOwnProof: @escaping @Sendable () -> Void, log: Log
    ) -> (watch: ServiceWatch?, history: ServiceHistory?) {
        guard let milliseconds = configuration.watchMilliseconds else { return (nil, nil) }
        let workers = loops.map { loop -> WorkerPulse.Asking in { task in loop.execute(task) } }
        let watch = ServiceWatch(
            pipeline.resources, pipeline.storage.trail, pipeline.admission, WorkerPulse(workers, clock: clock),
            OwnProof(pipeline.pool, pipeline.resources.signatures, clock: clock, random: random), configuration,
            slowest: pipeline.meter?.slowest, certificateEnd: { [self] in tls?.server.certificateEnd }, clock: clock,
            date: date, timers: timers, milliseconds: milliseconds, onOwnProof: onOwnProof)
        guard !operatorEndpoints.isEmpty, let meter = pipeline.meter else { return (watch, nil) }
        let metrics = MetricsPage(
            statistics: pipeline.statistics, rootSets: pipeline.resources.rootSets, pool: pipeline.pool, meter: meter,
            watch: watch, handshakes: { [self] in tls?.handshakes.outcomes })
        let history = ServiceHistory(of: pipeline, meter)
        history.start(timers)
        let console = ConsoleSite(pipeline, meter, watch, history, showsRecords: configuration.showsRecords)
        let site = OperatorSite(watch: watch, metrics: metrics, slowest: meter.slowest, console: console)
        let (principals, trail) = (pipeline.principals, pipeline.storage.trail)
        operations?.start(serving: { _, _ in site }, log: log)
        operationsElsewhere?.server.start(serving: { GuardedSite(site, principals, trail, $0, $1) }, log: log)
        return (watch, history)
    }

    /// Serves a connection if there is a place for it. Otherwise it is told so, or closed without a word when too many
    /// are being told.
    func serve(_ stream: any ByteStream, of peer: Holder, _ pipeline: Pipeline, _ places: Places) {
        var place: Place?
        switch places.take(peer) {
        case .seated(let taken): place = taken
        case .refused(isTold: true): break
        case .refused(isTold: false): return stream.close()
        }
        let loop = loops[nextLoop.add(1, ordering: .relaxed).oldValue % loops.count]
        let count = connections.add(1, ordering: .relaxed).newValue
        pipeline.statistics.accepted.add(1, ordering: .relaxed)
        pipeline.statistics.connections.store(count, ordering: .relaxed)
        Connection.start(stream, on: loop, of: peer) { [place] connection in
            let session = Session(connection, pipeline, address: peer) { holder in
                if let place { places.move(place, to: holder) }
            } onClose: { [self] in
                places.left(place)
                let left = connections.subtract(1, ordering: .relaxed).newValue
                pipeline.statistics.connections.store(left, ordering: .relaxed)
            }
            if let place {
                place.seat(session.responder)
            } else {
                session.refuse(
                    ServiceError(
                        .tooManyConnections, detail: UInt32(places.count),
                        "there are too many connections, and none of them is idle"))
            }
            return session
        }
    }

    /// Closes the listeners of a service that was not started.
    func closeListeners() {
        for listener in listeners + plainListeners { listener.close() }
        association?.closeListeners()
        operations?.closeListeners()
        operationsElsewhere?.server.closeListeners()
    }

    /// Changes the time-outs of all connections.
    func change(_ timeouts: EventLoop.Timeouts) {
        for loop in loops { loop.change(timeouts) }
    }

    /// Reads the files of certificates again.
    func reloadCertificates() {
        tls?.server.reload()
        operationsElsewhere?.tls.reload()
    }

    /// Closes the listeners, removes the files of local sockets, and closes the connections whose handshakes are not
    /// finished.
    func stopListening() {
        for listener in listeners + plainListeners { listener.removeFile() }
        loops[0].stopListening()
        tls?.handshakes.stop()
    }

    /// Closes every connection from this side, and waits up to `time` for the peers to do the same. Every request that
    /// was begun has its answer: the last frame tells the peers that the others were not begun.
    func closeConnections(within time: Duration) {
        var bytes: [UInt8] = []
        FrameWriter.appendError(Admission.shuttingDown, operation: 0, requestID: 0, to: &bytes)
        let farewell = bytes
        for loop in loops {
            loop.forEachConnection { connection in
                connection.send(farewell)
                connection.close()
            }
        }
        let deadline = ContinuousClock.now + time
        while connections.load(ordering: .relaxed) > 0, ContinuousClock.now < deadline { usleep(2000) }
    }

    /// From now on gives up peers that take few of their answers, or none.
    func drain() {
        for loop in loops { loop.drain() }
    }

    func stop() {
        for loop in loops { loop.stop() }
        association?.stop()
        operations?.stop()
        operationsElsewhere?.server.stop()
    }
}
