import Core
import Foundation
import Identity
import Platform
import TestSupport
import Transport

@testable import TLS

/// Sends back every byte that it receives.
final class ByteEcho: ConnectionHandler {
    private let connection: Connection
    private let onClose: @Sendable () -> Void

    init(_ connection: Connection, onClose: @escaping @Sendable () -> Void) {
        self.connection = connection
        self.onClose = onClose
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        connection.send(Array(buffer.bytes(range)))
        return Transport.Progress(consumed: range.count, nextFrameBytes: 0)
    }

    var isBusy: Bool { false }
    func drained() {}
    func closed() { onClose() }
}

/// An echo with TLS on a free port of the loopback interface.
final class EncryptedEcho: Sendable {
    let endpoint: Endpoint
    let tls: ServerTLS
    let lines: Shared<[String]>
    let opened = Shared(0)
    let closed = Shared(0)
    let resumed = Shared(0)
    let certificates = Shared<[PeerCertificate?]>([])
    private let loop: EventLoop
    private let handshakes: HandshakeLoop

    init(
        _ settings: ServerTLSSettings, bounds: HandshakeLoop.Bounds = HandshakeLoop.Bounds(),
        clock: MonotonicClock = .system
    ) throws {
        let lines = Shared<[String]>([])
        self.lines = lines
        let log = Log { line in lines.with { $0.append("\(line)") } }
        tls = try ServerTLS(settings, log: log)
        handshakes = try HandshakeLoop(tls, bounds: bounds, clock: clock, log: log)
        loop = try EventLoop(
            memory: MemoryBudget(bytesMax: 64 << 20),
            timeouts: EventLoop.Timeouts(idle: 1_000_000, stall: 1_000_000))
        let listener = try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0))[0]
        endpoint = listener.endpoint
        loop.start(name: "echo")
        handshakes.start()
        loop.listen(on: listener.descriptor) { [handshakes, loop, opened, closed, resumed, certificates] descriptor in
            handshakes.begin(descriptor) { stream in
                if (stream as? TLSStream)?.isResumed == true { resumed.increment() }
                Connection.start(stream, on: loop) { connection in
                    opened.increment()
                    certificates.with { $0.append(connection.peerCertificate) }
                    return ByteEcho(connection) { closed.increment() }
                }
            }
        } refuse: { _ in
        }
    }

    deinit {
        handshakes.stop()
        loop.stop()
    }

    /// Whether the log gets a line with this text.
    func says(_ text: String) -> Bool { becomesTrue { lines.value.contains { $0.contains(text) } } }
}

/// An authority, a certificate for the loopback interface, and their files.
final class CertificateFolder {
    let directory = ScratchDirectory()
    let authority = SimulatedAuthority()
    let authorityPath: String
    /// What a service on the loopback interface uses.
    let settings: ServerTLSSettings

    init(_ adjust: (inout CertificatePlan) -> Void = { _ in }) throws {
        authorityPath = try authority.write(to: directory.path)
        let paths = try authority.issue(CertificatePlan(adjust)).write(to: directory.path, as: "server")
        settings = ServerTLSSettings(certificatePath: paths.certificate, keyPath: paths.key)
    }

    /// The settings of a service that demands certificates of clients.
    var mutualSettings: ServerTLSSettings {
        var settings = settings
        settings.clientAuthoritiesPath = authorityPath
        return settings
    }

    /// What a client needs that trusts the authority.
    var options: TLSOptions { TLSOptions(authoritiesPath: authorityPath) }

    /// The same with a certificate of this authority, or of another one.
    func options(
        with plan: CertificatePlan, of issuer: SimulatedAuthority? = nil, as name: String = "client"
    ) throws -> TLSOptions {
        try options(with: (issuer ?? authority).issue(plan), as: name)
    }

    func options(with certificate: SimulatedCertificate, as name: String = "client") throws -> TLSOptions {
        let paths = try certificate.write(to: directory.path, as: name)
        return TLSOptions(authoritiesPath: authorityPath, certificatePath: paths.certificate, keyPath: paths.key)
    }

    /// Replaces the service's certificate and key.
    func replace(_ certificate: SimulatedCertificate) throws {
        _ = try certificate.write(to: directory.path, as: "server")
    }
}

/// A client that waits for what it sends and receives.
final class EncryptedPeer {
    let stream: any ByteStream

    init(_ endpoint: Endpoint, _ options: TLSOptions) throws(ServiceError) {
        stream = try Dialer(endpoint, tls: options).connect(milliseconds: 30_000)
    }

    init(_ dialer: Dialer) throws(ServiceError) {
        stream = try dialer.connect(milliseconds: 30_000)
    }

    deinit {
        stream.close()
    }

    private func wait(for interest: Interest) -> Bool {
        let events = interest == .reading ? POLLIN : POLLOUT
        var waiting = pollfd(fd: stream.descriptor, events: Int16(events), revents: 0)
        return poll(&waiting, 1, 30_000) == 1
    }

    /// Whether all bytes were taken.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let transfer = bytes.withUnsafeBytes { stream.send(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
            switch transfer {
            case .bytes(let count): sent += count
            case .wouldBlock(let interest): guard wait(for: interest) else { return false }
            case .ended: return false
            }
        }
        return true
    }

    /// `count` bytes, or fewer when the connection ends before.
    func receive(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let transfer = bytes.withUnsafeMutableBytes {
                stream.receive(into: UnsafeMutableRawBufferPointer(rebasing: $0[filled...]))
            }
            switch transfer {
            case .bytes(let more): filled += more
            case .wouldBlock(let interest): guard wait(for: interest) else { return Array(bytes[..<filled]) }
            case .ended: return Array(bytes[..<filled])
            }
        }
        return bytes
    }

    /// Whether what is sent comes back.
    func echoes(_ bytes: [UInt8] = Array("are you there?".utf8)) -> Bool {
        send(bytes) && receive(bytes.count) == bytes
    }

    /// Whether the service closes the connection without a byte.
    func isTurnedAway() -> Bool {
        send([1])
        return receive(1).isEmpty
    }
}

/// What a client's attempt to connect is refused with, or what is wrong with the connection; `nil` when it works.
func refusal(_ endpoint: Endpoint, _ options: TLSOptions) -> String? {
    do throws(ServiceError) {
        let peer = try EncryptedPeer(endpoint, options)
        guard peer.isTurnedAway() else { return nil }
        return peer.stream.failure ?? "the connection was closed"
    } catch {
        return error.reason
    }
}
