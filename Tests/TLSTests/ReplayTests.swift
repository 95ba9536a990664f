import Core
import Foundation
import TestSupport
import Testing
import Transport

@testable import TLS

/// Passes bytes on between clients and a service, and keeps what the clients send.
private final class RecordingProxy: Sendable {
    /// What each connection's client has sent.
    let recorded = Shared<[[UInt8]]>([])
    private let acceptor: Acceptor

    var endpoint: Endpoint { acceptor.endpoint }

    init(to service: Endpoint) throws {
        let recorded = recorded
        acceptor = try Acceptor { client in
            guard let server = try? RawPeer(service) else {
                close(client)
                return false
            }
            let number = recorded.with {
                $0.append([])
                return $0.count - 1
            }
            let ends = Shared(0)
            func pass(from source: CInt, to sink: CInt, _ note: @escaping @Sendable ([UInt8]) -> Void) {
                Thread {
                    var bytes = [UInt8](repeating: 0, count: 65_536)
                    while case let count = recv(source, &bytes, bytes.count, 0), count > 0 {
                        note(Array(bytes[..<count]))
                        var sent = 0
                        while sent < count {
                            let more = send(sink, Array(bytes[sent..<count]), count - sent, 0)
                            guard more > 0 else { break }
                            sent += more
                        }
                    }
                    _ = Foundation.shutdown(sink, CInt(SHUT_WR))
                    // Keeps the service's socket open until both directions have ended.
                    if ends.increment() == 2 { close(client) }
                    _ = server
                }.start()
            }
            pass(from: client, to: server.descriptor) { bytes in recorded.with { $0[number] += bytes } }
            pass(from: server.descriptor, to: client) { _ in }
            return true
        }
    }
}

@Suite("Recorded sessions", .serialized)
struct ReplayTests {
    @Test("The bytes of a recorded session do nothing when they are sent again, those of a resumed one neither")
    func replay() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let proxy = try RecordingProxy(to: echo.endpoint)
        let dialer = try Dialer(proxy.endpoint, tls: folder.options)
        let message = Array("add a root hash".utf8)
        for _ in 0..<3 {
            let peer = try EncryptedPeer(dialer)
            #expect(peer.echoes(message))
        }
        #expect(echo.resumed.value == 2)
        #expect(becomesTrue { echo.closed.value == 3 })
        #expect(proxy.recorded.value.count == 3)
        for bytes in proxy.recorded.value {
            #expect(bytes.count > 300)
            // All at once, as early data would come, and with pauses in which the service answers.
            for pieces in [1, 4] {
                let peer = try RawPeer(echo.endpoint)
                let size = (bytes.count + pieces - 1) / pieces
                for start in stride(from: 0, to: bytes.count, by: size) {
                    peer.send(bytes[start..<min(bytes.count, start + size)])
                    if pieces > 1 { usleep(20_000) }
                }
                // What comes back are the service's part of the handshake, which does not fit, and an alert.
                let answer = peer.receive(1 << 16)
                #expect(!answer.isEmpty && answer.count < 8192)
            }
        }
        // No connection has got as far as to the handler of received bytes.
        #expect(echo.opened.value == 3)
        #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
    }
}
