import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

/// Notes whose frames an event loop serves, in order. Each takes a while.
///
/// Sendable without the compiler's proof: its fields are constant.
private final class SlowHandler: ConnectionHandler, @unchecked Sendable {
    let number: Int
    let served: Shared<[Int]>
    let isBusy = false

    init(_ number: Int, _ served: Shared<[Int]>) {
        self.number = number
        self.served = served
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        usleep(200)
        served.with { $0.append(number) }
        return Transport.Progress(consumed: range.count, nextFrameBytes: 0)
    }
    func drained() {}
    func closed() {}
}

/// The clients' ends of connections to one loop, all on this machine's sockets without a name.
private final class Crowd {
    let loop: EventLoop
    let served = Shared<[Int]>([])
    private var clients: [CInt] = []

    /// Connection `number` belongs to `owner(number)`.
    init(_ count: Int, _ kind: PollerKind, owner: (Int) -> Holder) throws {
        loop = try EventLoop(
            memory: MemoryBudget(bytesMax: 64 << 20), timeouts: EventLoop.Timeouts(idle: 1_000_000, stall: 1_000_000),
            poller: try kind.make())
        loop.start(name: "crowd")
        for number in 0..<count {
            var ends: [CInt] = [0, 0]
            try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
            try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
            clients.append(ends[1])
            Connection.start(ends[0], on: loop, of: owner(number)) { [served] _ in SlowHandler(number, served) }
        }
    }

    deinit {
        loop.stop()
        for client in clients { close(client) }
    }

    /// Has the loop find all connections ready at once, in the order of their numbers.
    func sendAtOnce() {
        let (began, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        loop.execute {
            began.signal()
            gate.wait()
        }
        began.wait()
        for client in clients {
            var byte: UInt8 = 1
            _ = write(client, &byte, 1)
        }
        gate.signal()
    }
}

@Suite("Turns of peers on an event loop", .serialized)
struct TurnsTests {
    @Test(
        "A peer with one ready connection does not wait for all of another one with 400", arguments: PollerKind.allCases
    )
    func turns(kind: PollerKind) throws {
        let crowd = try Crowd(401, kind) { .address(UInt32($0 < 400 ? 1 : 2)) }
        crowd.sendAtOnce()
        #expect(becomesTrue { crowd.served.value.count == 401 })
        let place = try #require(crowd.served.value.firstIndex(of: 400))
        #expect(place < 100, "the other peer was served as number \(place)")
        #expect(Set(crowd.served.value).count == 401)
    }

    @Test("Ready connections of one peer are served in the order in which they became ready")
    func order() throws {
        let crowd = try Crowd(200, .systems) { _ in .address(UInt32(1)) }
        crowd.sendAtOnce()
        #expect(becomesTrue { crowd.served.value.count == 200 })
        #expect(crowd.served.value == Array(0..<200))
    }
}

@Suite("Unread answers while a loop drains", .serialized)
struct DrainTests {
    /// A server with 20 MB of unread answers for one peer, of which the system takes a few KiB at a time. Time stands
    /// still.
    private func scene() throws -> (server: EchoServer, peer: RawPeer) {
        let server = try EchoServer(idle: 1_000_000, stall: 5000)
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
        let peer = RawPeer(descriptor: ends[1])
        var bytes: CInt = 16 << 10
        try #require(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<CInt>.size)) == 0)
        try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
        let counts = server.counts
        Connection.start(ends[0], on: server.loop) { EchoHandler($0, EchoBehaviour(), counts) }
        for _ in 0..<20 { peer.send(frame(pattern(1_000_000))) }
        #expect(becomesTrue { counts.frames.value == 20 })
        return (server, peer)
    }

    @Test("A peer that takes less than 256 KiB of its answers in a second is given up")
    func slowReader() throws {
        let (server, peer) = try scene()
        server.loop.drain()
        for _ in 0..<40 {
            _ = peer.receive(10_000)
            server.advance(100)
        }
        #expect(becomesTrue { server.counts.closed.value == 1 })
    }

    @Test("Such a peer is not given up before the loop drains")
    func beforeDraining() throws {
        let (server, peer) = try scene()
        for _ in 0..<100 {
            #expect(peer.receive(10_000).count == 10_000)
            server.advance(100)
        }
        #expect(server.counts.closed.value == 0)
    }

    @Test("A peer that takes its answers quickly gets all of them while the loop drains")
    func quickReader() throws {
        let (server, peer) = try scene()
        server.loop.drain()
        for number in 0..<20 {
            let isWhole = peer.receive(1_000_004) == frame(pattern(1_000_000))
            #expect(isWhole, "answer \(number)")
            server.advance(500)
        }
        #expect(server.counts.closed.value == 0)
    }
}
