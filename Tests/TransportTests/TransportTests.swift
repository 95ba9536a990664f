import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

@Suite struct EndpointTests {
    @Test func textIsReadAndWritten() {
        #expect(Endpoint("localhost:7570") == Endpoint(host: "localhost", port: 7570))
        #expect(Endpoint("[::1]:80") == Endpoint(host: "::1", port: 80))
        #expect(Endpoint(host: "::1", port: 80).description == "[::1]:80")
        for wrong in ["", "localhost", ":80", "localhost:", "localhost:65536", "::1:80", "host:-1"] {
            #expect(Endpoint(wrong) == nil, "\(wrong)")
        }
    }

    @Test func loopbackIsKnown() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1"] {
            #expect(Endpoint(host: host, port: 1).isLoopback, "\(host)")
        }
        for host in ["0.0.0.0", "::", "128.0.0.1", "example.org", "127.0.0.1.example.org", "10.0.0.1"] {
            #expect(!Endpoint(host: host, port: 1).isLoopback, "\(host)")
        }
    }
}

/// Sends back whatever comes, in messages of a 4-byte length and that many bytes.
private final class Echo: ConnectionHandler {
    private let connection: Connection
    private let pausesAfterEach: Bool

    init(_ connection: Connection, pausesAfterEach: Bool) {
        self.connection = connection
        self.pausesAfterEach = pausesAfterEach
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        var start = range.lowerBound
        while range.upperBound - start >= 4 {
            let length = Int(buffer.bytes(start..<start + 4).loadUnaligned(as: UInt32.self))
            guard range.upperBound - start >= 4 + length else {
                return Transport.Progress(consumed: start - range.lowerBound, nextFrameBytes: 4 + length)
            }
            // Small ones are copied, large ones keep the buffer: both come back whole.
            let frame = FrameBytes(buffer, start..<start + 4 + length)
            connection.send(Array(frame.bytes))
            start += 4 + length
            if pausesAfterEach {
                connection.pauseReading()
                connection.resumeReading()
                break
            }
        }
        return Transport.Progress(consumed: start - range.lowerBound, nextFrameBytes: 4)
    }

    var isBusy: Bool { false }
    func drained() {}
    func closed() {}
}

/// A loop that echoes on a free port.
private final class EchoServer: Sendable {
    let loop: EventLoop
    let endpoint: Endpoint

    init(
        pausesAfterEach: Bool = false, idle: UInt64 = 60_000, stall: UInt64 = 60_000, memory: Int = 64 << 20,
        poller: (any Poller)? = nil
    ) throws {
        let loop = try EventLoop(
            buffers: ReceiveBufferPool(bytesMax: memory), timeouts: .init(idle: idle, stall: stall), poller: poller)
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        endpoint = listener.endpoint
        loop.start(name: "echo")
        loop.listen(on: listener.descriptor) { descriptor in
            Connection.open(descriptor, on: loop) { Echo($0, pausesAfterEach: pausesAfterEach) }
        } refuse: { _ in
        }
        self.loop = loop
    }

    deinit {
        loop.stop()
    }
}

/// A blocking socket.
private final class Peer: Sendable {
    private let descriptor: CInt

    init(_ endpoint: Endpoint) throws {
        descriptor = try Socket.connect(to: endpoint, milliseconds: 5000)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        var time = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        close(descriptor)
    }

    func write(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, System.sendFlags) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func read(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: min(65_536, count - bytes.count))
            let received = recv(descriptor, &buffer, buffer.count, 0)
            guard received > 0 else { break }
            bytes += buffer[..<received]
        }
        return bytes
    }
}

private func message(_ body: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(body.count)) { Array($0) } + body
}

@Suite struct ConnectionTests {
    private func exchange(_ server: EchoServer, sizes: ClosedRange<Int>, cuts: ClosedRange<Int>, count: Int) throws {
        var generator = SeededGenerator(seed: runSeed)
        let stream = (0..<count).flatMap { _ in message(generator.bytes(Int.random(in: sizes, using: &generator))) }
        var pieces: [ArraySlice<UInt8>] = []
        var start = 0
        while start < stream.count {
            let end = min(stream.count, start + Int.random(in: cuts, using: &generator))
            pieces.append(stream[start..<end])
            start = end
        }
        let peer = try Peer(server.endpoint)
        let sender = Thread { [pieces] in for piece in pieces { peer.write(piece) } }
        sender.start()
        let isSame = peer.read(stream.count) == stream
        #expect(isSame, "seed \(runSeed)")
    }

    @Test func messagesComeBackWholeHoweverTheyAreCut() throws {
        try exchange(EchoServer(), sizes: 0...2000, cuts: 1...50, count: 60)
        try exchange(EchoServer(), sizes: 0...2000, cuts: 1...5000, count: 2000)
    }

    @Test func messagesLargerThanABufferComeBackWhole() throws {
        try exchange(EchoServer(), sizes: 200_000...1_500_000, cuts: 1...300_000, count: 12)
    }

    @Test func pausingAfterEveryMessageLosesNothing() throws {
        try exchange(EchoServer(pausesAfterEach: true), sizes: 0...40_000, cuts: 1...100_000, count: 300)
    }

    @Test func thePortablePollerDoesTheSame() throws {
        try exchange(EchoServer(poller: PollPoller()), sizes: 0...40_000, cuts: 1...10_000, count: 300)
    }

    @Test func lackOfReceiveMemoryDelaysAndLosesNothing() throws {
        // One buffer for all, and frames that need a larger one of their own.
        let server = try EchoServer(memory: 4 << 20)
        onThreads(4) { _ in
            do {
                try exchange(server, sizes: 100_000...900_000, cuts: 1...500_000, count: 4)
            } catch {
                Issue.record(error)
            }
        }
    }

    @Test func aSilentPeerIsClosedAfterItsTime() throws {
        let server = try EchoServer(idle: 500)
        let peer = try Peer(server.endpoint)
        #expect(peer.read(1).isEmpty)
    }

    @Test func anUnfinishedMessageIsClosedAfterItsTimeEvenIfItTrickles() throws {
        let server = try EchoServer(stall: 1000)
        let peer = try Peer(server.endpoint)
        peer.write([255, 0, 0, 0])
        let trickle = Thread {
            for _ in 0..<60 {
                peer.write([1])
                usleep(100_000)
            }
        }
        trickle.start()
        let begin = ContinuousClock.now
        #expect(peer.read(1).isEmpty)
        #expect(ContinuousClock.now - begin < .seconds(5))
    }

    @Test func twoThousandConnectionsAreOpenAtOnce() throws {
        let server = try EchoServer()
        let peers = try (0..<2000).map { _ in try Peer(server.endpoint) }
        for (number, peer) in peers.enumerated() { peer.write(message([UInt8(number % 256)])[...]) }
        for (number, peer) in peers.enumerated() { #expect(peer.read(5).last == UInt8(number % 256)) }
    }

    @Test func nobodyListeningIsARefusal() throws {
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        close(listener.descriptor)
        let error = thrownServiceError { _ = try Socket.connect(to: listener.endpoint, milliseconds: 500) }
        #expect(error?.code == .connectionRefused)
    }
}
