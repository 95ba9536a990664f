import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

@testable import TLS

@Suite("Bounds of handshakes", .serialized)
struct HandshakeBoundTests {
    /// A service whose loop has these bounds, and a peer that is in.
    private struct Scene {
        let folder: CertificateFolder
        let echo: EncryptedEcho
        let established: EncryptedPeer
    }

    private func scene(unfinishedMax: Int) throws -> Scene {
        let folder = try CertificateFolder()
        var bounds = HandshakeLoop.Bounds()
        bounds.unfinishedMax = unfinishedMax
        let echo = try EncryptedEcho(folder.settings, bounds: bounds)
        let established = try EncryptedPeer(echo.endpoint, folder.options)
        #expect(established.echoes())
        return Scene(folder: folder, echo: echo, established: established)
    }

    @Test("A handshake that stalls is closed after its time, and others are served meanwhile")
    func stalled() throws {
        let folder = try CertificateFolder()
        let time = Shared<UInt64>(1000)
        var bounds = HandshakeLoop.Bounds()
        bounds.milliseconds = 5000
        let echo = try EncryptedEcho(folder.settings, bounds: bounds, clock: MonotonicClock { time.value })
        let silent = try RawPeer(echo.endpoint)
        let halfway = try RawPeer(echo.endpoint)
        // The beginning of a record that never ends.
        halfway.send([22, 3, 1, 2, 0, 1, 0, 1])
        let peer = try EncryptedPeer(echo.endpoint, folder.options)
        #expect(peer.echoes())
        time.with { $0 += 4999 }
        #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
        #expect(silent.isQuiet() && halfway.isQuiet())
        time.with { $0 += 2 }
        #expect(silent.hasEnded() && halfway.hasEnded())
        #expect(echo.says("it took too long for the handshake"))
        #expect(peer.echoes())
    }

    @Test("When too many handshakes are unfinished the oldest is given up, and a newcomer gets in")
    func tooMany() throws {
        let scene = try scene(unfinishedMax: 4)
        let (folder, echo, established) = (scene.folder, scene.echo, scene.established)
        let silent = try (0..<4).map { _ in try RawPeer(echo.endpoint) }
        #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
        #expect(silent[0].hasEnded())
        #expect(silent[3].isQuiet())
        #expect(echo.says("more than 4 handshakes are unfinished"))
        #expect(established.echoes())
    }

    @Test("A flood of handshakes that are not finished holds up nobody who is in")
    func flood() throws {
        let scene = try scene(unfinishedMax: 64)
        let (folder, echo, established) = (scene.folder, scene.echo, scene.established)
        let isOver = Shared(false)
        let endpoint = echo.endpoint
        let hello = try clientHello()
        let flooding = Thread {
            while !isOver.value {
                // Each costs the service a key exchange and a signature.
                guard let peer = try? RawPeer(endpoint) else { continue }
                peer.send(hello)
            }
        }
        flooding.start()
        defer { isOver.with { $0 = true } }
        for _ in 0..<200 { #expect(established.echoes()) }
        // The flood may push a newcomer out; it tries again, as RootgateClient does.
        #expect(becomesTrue { (try? EncryptedPeer(echo.endpoint, folder.options))?.echoes() == true })
        #expect(established.echoes())
    }

    @Test("An address with many unfinished handshakes loses its own, and keeps no other address out")
    func shares() throws {
        let scene = try scene(unfinishedMax: 8)
        let (folder, echo, established) = (scene.folder, scene.echo, scene.established)
        let early = try RawPeer(echo.endpoint)
        var attackers = try (0..<7).map { _ in try AttackPeer(to: echo.endpoint) }
        #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
        for _ in 0..<50 {
            attackers.append(try AttackPeer(to: echo.endpoint))
            #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
        }
        // The handshake that began before all of the attacker's is still under way.
        #expect(early.isQuiet())
        #expect(attackers.count { $0.read(1) == nil } >= 49)
        #expect(echo.lines.value.allSatisfy { $0.contains("from \(AttackPeer.address)") }, "\(echo.lines.value)")
        #expect(established.echoes())
    }

    @Test("A flood of handshakes from one address keeps no newcomer from another one out")
    func floodOfOneAddress() throws {
        let scene = try scene(unfinishedMax: 16)
        let (folder, echo) = (scene.folder, scene.echo)
        let (isOver, sent) = (Shared(false), Shared(0))
        let endpoint = echo.endpoint
        let hello = try clientHello()
        let ended = DispatchSemaphore(value: 0)
        for _ in 0..<2 {
            Thread {
                while !isOver.value {
                    guard let peer = try? AttackPeer(to: endpoint) else { continue }
                    peer.send(hello[...])
                    sent.increment()
                }
                ended.signal()
            }.start()
        }
        #expect(becomesTrue { sent.value > 100 })
        for _ in 0..<40 { #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes()) }
        isOver.with { $0 = true }
        for _ in 0..<2 { ended.wait() }
        #expect(sent.value > 200)
        #expect(!echo.lines.value.contains { $0.contains("from 127.0.0.1") }, "\(echo.lines.value.suffix(3))")
    }

    @Test("So many handshakes begin in one turn of the loop, and one more begins in the next")
    func turns() throws {
        let folder = try CertificateFolder()
        let (lines, seen) = (Shared(0), Shared<[Int]>([]))
        // The loop reads the clock in each turn. By then each handshake that has begun was refused with a line.
        let clock = MonotonicClock {
            seen.with { $0.append(lines.value) }
            return 1000
        }
        let loop = try HandshakeLoop(
            try ServerTLS(folder.settings), clock: clock, log: Log { _ in lines.increment() })
        var peers: [CInt] = []
        defer { for peer in peers { close(peer) } }
        let text = Array("GET / HTTP/1.1\r\n\r\n".utf8)
        for _ in 0...Limits.handshakesBegunPerTurn {
            var ends: [CInt] = [-1, -1]
            try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
            try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) != -1)
            #expect(send(ends[1], text, text.count, 0) == text.count)
            peers.append(ends[1])
            loop.begin(ends[0]) { _ in }
        }
        loop.start()
        #expect(becomesTrue { seen.value.contains(Limits.handshakesBegunPerTurn + 1) })
        loop.stop()
        #expect(seen.value.first { $0 > 0 } == Limits.handshakesBegunPerTurn)
    }

    @Test("Plain text on the port is refused with a line that says so")
    func plainText() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        for text in ["GET / HTTP/1.1\r\n\r\n", "\u{10}\0\0\0\u{1}\u{1}\u{1}\0\u{1}\0\0\0\0\0\0\0 and more bytes"] {
            let count = echo.lines.value.count
            let peer = try RawPeer(echo.endpoint)
            peer.send(Array(text.utf8))
            _ = peer.receive(100)
            #expect(becomesTrue { echo.lines.value.count > count })
            #expect(echo.lines.value.last?.contains("it does not speak TLS") == true, "\(echo.lines.value)")
        }
    }

    @Test("A look at whether the port is open is not worth a line")
    func probes() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        for _ in 0..<5 { _ = try RawPeer(echo.endpoint) }
        #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
        #expect(echo.lines.value.isEmpty)
    }

    /// A thousand, or as many as `ROOTGATE_TLS_MUTATIONS` says.
    private let mutations = ProcessInfo.processInfo.environment["ROOTGATE_TLS_MUTATIONS"].flatMap { Int($0) } ?? 1000

    @Test("Random and altered bytes in place of a handshake neither end the service nor get in")
    func mutatedBytes() throws {
        let folder = try CertificateFolder()
        var bounds = HandshakeLoop.Bounds()
        bounds.unfinishedMax = 256
        let echo = try EncryptedEcho(folder.settings, bounds: bounds)
        let hello = try clientHello()
        var random = SeededGenerator(seed: runSeed)
        for number in 0..<mutations {
            var bytes = number % 4 == 0 ? random.bytes(Int.random(in: 1...600, using: &random)) : hello
            if number % 4 != 0 {
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                if number % 4 == 2 { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random)) }
                if number % 4 == 3 { bytes += random.bytes(Int.random(in: 1...200, using: &random)) }
            }
            let peer = try RawPeer(echo.endpoint)
            peer.send(bytes)
            if number % 100 == 0 { #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes()) }
        }
        #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
        #expect(echo.opened.value == mutations / 100 + (mutations % 100 == 0 ? 1 : 2))
    }

    @Test("Altered records after the handshake end that connection only")
    func mutatedRecords() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let peer = try EncryptedPeer(echo.endpoint, folder.options)
        #expect(peer.echoes())
        let altered = try EncryptedPeer(echo.endpoint, folder.options)
        #expect(altered.echoes())
        // A record of application data that nobody has encrypted.
        let record: [UInt8] = [23, 3, 3, 0, 20] + [UInt8](repeating: 9, count: 20)
        _ = record.withUnsafeBytes { Socket.send(altered.stream.descriptor, $0) }
        #expect(altered.receive(1).isEmpty)
        #expect(becomesTrue { echo.closed.value == 1 })
        #expect(peer.echoes())
    }

    /// The first bytes that our client sends in a handshake, from a listener that answers nothing.
    private func clientHello() throws -> [UInt8] {
        let listener = try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0))[0]
        defer { close(listener.descriptor) }
        let taken = Shared<[UInt8]>([])
        let folder = try CertificateFolder()
        let options = folder.options
        let thread = Thread { _ = try? Dialer(listener.endpoint, tls: options).connect(milliseconds: 10_000) }
        thread.start()
        var connection: CInt = -1
        guard
            becomesTrue({
                connection = accept(listener.descriptor, nil, nil)
                return connection >= 0
            })
        else { return [] }
        defer { close(connection) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(connection, &bytes, bytes.count, 0)
        taken.with { $0 = Array(bytes.prefix(max(0, count))) }
        return taken.value
    }
}
