import Core
import Platform
import Synchronization
import TLS
import Transport

/// The pages of an `HTTPServer`.
protocol HTTPSite: Sendable {
    /// The page that a request asks for; `nil` when there is none. Called on the server's thread.
    func page(for request: HTTPRequest) -> HTTPPage?
}

/// A small server of HTTP/1.1 for pages that are read, and for short forms: GET, HEAD and POST, and one response a
/// connection.
///
/// It has a thread and memory of its own. So it answers also when every worker is busy, and its visitors take nothing
/// from the clients of the service.
final class HTTPServer: Sendable {
    /// The site of a connection from an address.
    typealias Sites = @Sendable (Connection, Holder) -> any HTTPSite

    let listeners: [Listener]
    private let loop: EventLoop
    /// `nil`: nothing is encrypted.
    private let handshakes: HandshakeLoop?
    private let name: String
    private let descriptorsKept: Int
    private let visitors: Lock<Visitors>
    private let isStarted = Atomic<Bool>(false)

    private struct Visitors {
        /// Those who get a page.
        var guests: PeerShares
        /// Those who are told that there are too many.
        var refused: PeerShares
    }

    /// Takes over the listeners, unless it throws. Accepts no connection yet. `name`: of the thread. `tls`: every
    /// connection is encrypted; `nil`: none is. `log` gets lines about handshakes. `visitorsMax`: those who get a page,
    /// those who are told that there are too many, and unfinished handshakes. `kept`: descriptors of the process that
    /// visitors leave.
    ///
    /// Throws when the system has no descriptors.
    init(
        _ name: String, on listeners: [Listener], tls: ServerTLS? = nil, _ clock: MonotonicClock, log: Log,
        visitorsMax: Int, keepingDescriptors kept: Int = Limits.descriptorsKept
    ) throws(StartupFailure) {
        self.name = name
        descriptorsKept = kept
        visitors = Lock(
            Visitors(guests: PeerShares(capacity: visitorsMax), refused: PeerShares(capacity: visitorsMax)))
        self.listeners = listeners
        do throws(SystemFailure) {
            loop = try EventLoop(
                memory: MemoryBudget(bytesMax: Limits.visitorsBytesMax),
                timeouts: EventLoop.Timeouts(
                    idle: Limits.requestHeadMilliseconds, stall: Limits.requestHeadMilliseconds),
                clock: clock)
            var bounds = HandshakeLoop.Bounds()
            bounds.unfinishedMax = visitorsMax
            handshakes = try tls.map { tls throws(SystemFailure) in
                try HandshakeLoop(tls, bounds: bounds, clock: clock, log: log)
            }
        } catch {
            throw StartupFailure.outOfResources("\(error)")
        }
    }

    /// The addresses, with the actual ports.
    var endpoints: [Endpoint] { listeners.map(\.endpoint) }

    /// Starts the thread and accepts connections. Must be called once.
    func start(serving site: @escaping Sites, log: Log) {
        isStarted.store(true, ordering: .releasing)
        loop.start(name: name)
        handshakes?.start()
        for listener in listeners {
            loop.listen(on: listener.descriptor, keepingDescriptors: descriptorsKept) { [self] descriptor in
                // When the peer is gone after the handshake, the system does not tell any more who it was.
                let peer = Holder(of: descriptor)
                guard let handshakes else { return welcome(PlainStream(descriptor), of: peer, site) }
                handshakes.begin(descriptor) { [self] stream in welcome(stream, of: peer, site) }
            } refuse: { failure in
                log(.warning, "can't accept connections for now: \(failure)")
            }
        }
    }

    /// Serves a connection. When its address has too many, it is told so, or closed without a word when too many are
    /// being told.
    private func welcome(_ stream: any ByteStream, of peer: Holder, _ site: @escaping Sites) {
        let (isGuest, isTold) = visitors.withLock { visitors in
            let isGuest = visitors.guests.take(1, by: peer)
            return (isGuest, isGuest || visitors.refused.take(1, by: peer))
        }
        guard isTold else { return stream.close() }
        Connection.start(stream, on: loop, of: peer) { connection in
            HTTPVisit(connection, isGuest ? site(connection, peer) : nil) { [self] in
                visitors.withLock { visitors in
                    if isGuest { visitors.guests.giveBack(1, by: peer) } else { visitors.refused.giveBack(1, by: peer) }
                }
            }
        }
    }

    /// Closes the listeners of a server that was not started.
    func closeListeners() {
        for listener in listeners { listener.close() }
    }

    /// Closes listeners and connections, removes the files of local sockets, and waits until the thread has ended.
    func stop() {
        guard isStarted.load(ordering: .acquiring) else { return closeListeners() }
        for listener in listeners { listener.removeFile() }
        loop.stopListening()
        handshakes?.stop()
        loop.stop()
    }
}
