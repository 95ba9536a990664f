import Core
import Foundation
import Identity
import TestSupport

@testable import TLS

/// What a client sends to a service that begins a handshake. The first byte says which TLS the service speaks.
enum FuzzedServerTLS {
    static let subject = FuzzSubject("server-tls", bytesMax: 2048, seeds: seeds) { input in
        guard let side = TLSSides.shared, let first = input.first else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
        try TLSSides.feed(bytes, to: first & 1 == 0 ? side.server : side.oldServer)
        try checkList(bytes)
    }

    /// The list of application protocols is read as RFC 7301 has it.
    private static func checkList(_ bytes: UnsafeRawBufferPointer) throws {
        let found = bytes.withMemoryRebound(to: UInt8.self) { ApplicationProtocol.rootgate.place(in: $0) }
        var parts = InputParts(bytes)
        var expected: Int?
        while expected == nil, !parts.isAtEnd {
            let place = bytes.count - parts.rest.count
            guard let name = parts.short() else { break }
            if name == Array("rootgate/1".utf8) { expected = place }
        }
        try demand(found == expected, "the protocol is found at \(found as Int?), not at \(expected as Int?)")
    }

    private static func seeds() throws -> [[UInt8]] {
        guard let side = TLSSides.shared else { return [] }
        let hello = try TLSSides.firstBytes(of: side.client, name: "localhost")
        let list = Array("\u{2}h2\u{a}rootgate/1".utf8)
        return [
            [0] + list, [0] + hello, [1] + hello, [0] + Array("GET / HTTP/1.1\r\n\r\n".utf8),
            [0, 21, 3, 1, 0, 2, 2, 40],
        ]
    }
}

/// What a service, or whoever stands between, sends to a client.
enum FuzzedClientTLS {
    static let subject = FuzzSubject("client-tls", bytesMax: 4096, seeds: seeds) { input in
        guard let side = TLSSides.shared else { return }
        try TLSSides.feed(input, to: side.client, name: "localhost")
    }

    private static func seeds() throws -> [[UInt8]] {
        guard let side = TLSSides.shared else { return [] }
        let hello = try TLSSides.firstBytes(of: side.client, name: "localhost")
        return [try TLSSides.answer(of: side.server, to: hello), [21, 3, 3, 0, 2, 2, 40], Array("rootgate".utf8)]
    }
}

/// The settings of both sides, and handshakes on pairs of sockets.
private struct TLSSides: Sendable {
    let server: TLSContext
    /// With TLS 1.2 allowed.
    let oldServer: TLSContext
    let client: TLSContext

    static let shared: TLSSides? = try? TLSSides()

    private init() throws {
        let directory = ScratchDirectory()
        let authority = SimulatedAuthority()
        let paths = try authority.issue(CertificatePlan { _ in }).write(to: directory.path, as: "server")
        let authorities = try authority.write(to: directory.path)
        server = try TLSContext(.server, demandsCertificate: false)
        try server.use(certificate: paths.certificate, key: paths.key)
        oldServer = try TLSContext(.server, allowsTLS12: true, demandsCertificate: true)
        try oldServer.use(certificate: paths.certificate, key: paths.key)
        try oldServer.trust(authorities: authorities)
        client = try TLSContext(.client, demandsCertificate: true)
        try client.trust(authorities: authorities)
    }

    /// A handshake, and the descriptor of the other side of its socket, which the caller closes.
    private static func begin(_ context: TLSContext, name: String?) throws -> (handshake: Handshake, peer: CInt) {
        var pair: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
            throw Finding("no sockets are left")
        }
        for descriptor in pair { _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) }
        let handshake = try Handshake(pair[0], context)
        if let name { try handshake.expect(name, resumes: false) }
        return (handshake, pair[1])
    }

    /// Sends the bytes and the end to one side. Its handshake may fail, but never succeed: nobody has answered.
    static func feed(_ bytes: UnsafeRawBufferPointer, to context: TLSContext, name: String? = nil) throws {
        let (handshake, peer) = try begin(context, name: name)
        defer { close(peer) }
        if bytes.count > 0 { _ = write(peer, bytes.baseAddress, bytes.count) }
        shutdown(peer, CInt(SHUT_WR))
        do throws(HandshakeFailure) {
            for _ in 0..<4 {
                if case .done = try handshake.advance() { throw .refused("done") }
            }
        } catch {
            if case .refused(let reason) = error {
                try demand(!reason.isEmpty && reason != "done", "a handshake with recorded bytes succeeded")
                try demand(!reason.contains("\n") && reason.utf8.count < 1024, "the reason is “\(reason)”")
            }
        }
    }

    /// What a side sends before it has received anything.
    static func firstBytes(of context: TLSContext, name: String?) throws -> [UInt8] {
        let (handshake, peer) = try begin(context, name: name)
        defer { close(peer) }
        _ = try handshake.advance()
        return received(from: peer)
    }

    /// What a side answers to some bytes.
    static func answer(of context: TLSContext, to bytes: [UInt8]) throws -> [UInt8] {
        let (handshake, peer) = try begin(context, name: nil)
        defer { close(peer) }
        _ = write(peer, bytes, bytes.count)
        _ = try handshake.advance()
        return received(from: peer)
    }

    private static func received(from descriptor: CInt) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 8192) { memory, count in
            count = max(0, read(descriptor, memory.baseAddress, memory.count))
        }
    }
}
