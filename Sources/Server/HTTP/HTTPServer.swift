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
///
/// At addresses that other machines reach it speaks TLS only, when it has a certificate.
final class HTTPServer: Sendable {
    let listeners: [Listener]
    private let loop: EventLoop
    /// `nil`: every address is served without encryption.
    private let handshakes: HandshakeLoop?
    private let name: String
    private let visitors = Lock(Visitors())
    /// Those with TLS have places of their own, so strangers keep no program of this machine out.
    private let encryptedVisitors = Lock(Visitors())
    private let isStarted = Atomic<Bool>(false)

    private struct Visitors {
        /// Those who get a page.
        var guests = PeerShares(capacity: Limits.visitorsMax)
        /// Those who are told that there are too many.
        var refused = PeerShares(capacity: Limits.visitorsMax)
    }

    /// Listens, also on `inherited`. Accepts no connection yet. `name`: of the thread. `mode`: the permissions of local
    /// sockets' files. `tls`: for the addresses that other machines reach; `nil`: they are not encrypted.
    ///
    /// Throws when the system does not let it listen at an address, or has no descriptors.
    init(
        _ name: String, at endpoints: [Endpoint], and inherited: [Listener], mode: UInt32, tls: ServerTLS? = nil,
        _ clock: MonotonicClock, log: Log = .none
    ) throws(StartupFailure) {
        self.name = name
        do throws(SystemFailure) {
            loop = try EventLoop(
                memory: MemoryBudget(bytesMax: Limits.visitorsBytesMax),
                timeouts: EventLoop.Timeouts(
                    idle: Limits.requestHeadMilliseconds, stall: Limits.requestHeadMilliseconds),
                clock: clock)
            var bounds = HandshakeLoop.Bounds()
            bounds.unfinishedMax = Limits.visitorsMax
            handshakes = try tls.map { tls throws(SystemFailure) in
                try HandshakeLoop(tls, bounds: bounds, clock: clock, log: log)
            }
        } catch {
            throw StartupFailure.outOfResources("\(error)")
        }
        listeners = try inherited + Sockets.listen(at: endpoints, mode)
    }

    /// The addresses, with the actual ports.
    var endpoints: [Endpoint] { listeners.map(\.endpoint) }

    /// Starts the thread and accepts connections. Must be called once. `encrypted`: the site that a connection with TLS
    /// gets; `nil`: `site`, too.
    func start(
        serving site: any HTTPSite, encrypted: (@Sendable (Connection, Holder) -> any HTTPSite)? = nil, log: Log
    ) {
        isStarted.store(true, ordering: .releasing)
        loop.start(name: name)
        handshakes?.start()
        for listener in listeners {
            loop.listen(on: listener.descriptor) { [self] descriptor in
                guard let handshakes, !listener.endpoint.isLoopback else {
                    let peer = Holder(of: descriptor)
                    return welcome(PlainStream(descriptor), of: peer, isEncrypted: false) { _ in site }
                }
                handshakes.begin(descriptor) { [self] stream in
                    let peer = Holder(of: stream.descriptor)
                    welcome(stream, of: peer, isEncrypted: true) { encrypted?($0, peer) ?? site }
                }
            } refuse: { failure in
                log(.warning, "can't accept connections for now: \(failure)")
            }
        }
    }

    private func withPlaces<R>(_ isEncrypted: Bool, _ body: (inout sending Visitors) -> sending R) -> R {
        isEncrypted ? encryptedVisitors.withLock(body) : visitors.withLock(body)
    }

    /// Serves a connection. When its address has too many, it is told so, or closed without a word when too many are
    /// being told.
    private func welcome(
        _ stream: any ByteStream, of peer: Holder, isEncrypted: Bool,
        _ site: @escaping @Sendable (Connection) -> any HTTPSite
    ) {
        let (isGuest, isTold) = withPlaces(isEncrypted) { visitors in
            let isGuest = visitors.guests.take(1, by: peer)
            return (isGuest, isGuest || visitors.refused.take(1, by: peer))
        }
        guard isTold else { return stream.close() }
        Connection.start(stream, on: loop, of: peer) { connection in
            HTTPVisit(connection, isGuest ? site(connection) : nil) { [self] in
                withPlaces(isEncrypted) { visitors in
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
