import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

/// Notes whose frames an event loop serves, in order. Each takes a time.
///
/// Sendable without the compiler's proof: its fields are constant.
private final class SlowHandler: ConnectionHandler, @unchecked Sendable {
    let number: Int
    let served: Shared<[Int]>
    let isBusy = false
    private let log: Shared<LookLog>
    private let kind: WorkKind?
    /// Lets the time of one request pass.
    private let pass: () -> Void

    init(
        _ number: Int, _ served: Shared<[Int]>, _ log: Shared<LookLog>, _ kind: WorkKind?, pass: @escaping () -> Void
    ) {
        self.pass = pass
        self.number = number
        self.served = served
        self.log = log
        self.kind = kind
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        pass()
        log.with {
            $0.served += 1
            $0.receivedMost = max($0.receivedMost, range.count)
        }
        served.with { $0.append(number) }
        return Transport.Progress(consumed: range.count, nextFrameBytes: 0, kind: kind)
    }
    func drained() {}
    func closed() {}
}

/// What a loop did between two looks at its sockets.
private struct LookLog {
    /// Connections that were served, and portions of work that were performed.
    var between: [(served: Int, performed: Int)] = []
    var served = 0
    var performed = 0
    /// The most bytes that a connection got at once.
    var receivedMost = 0

    mutating func look() {
        between.append((served, performed))
        (served, performed) = (0, 0)
    }
}

/// A poller that notes each look.
private final class LoggingPoller: Poller {
    private let poller: any Poller
    private let log: Shared<LookLog>

    init(_ poller: any Poller, _ log: Shared<LookLog>) {
        (self.poller, self.log) = (poller, log)
    }

    func watch(_ descriptor: CInt, for interest: Interest, isNew: Bool) throws(SystemFailure) {
        try poller.watch(descriptor, for: interest, isNew: isNew)
    }
    func forget(_ descriptor: CInt) { poller.forget(descriptor) }
    func wait(milliseconds: CInt, into ready: inout [Readiness]) {
        log.with { $0.look() }
        poller.wait(milliseconds: milliseconds, into: &ready)
    }
}

/// The clients' ends of connections to one loop, all on this machine's sockets without a name.
private final class Crowd {
    let loop: EventLoop
    let served = Shared<[Int]>([])
    let log = Shared(LookLog())
    /// How often the loop let other threads run.
    let pauses = Shared(0)
    private var clients: [CInt] = []

    /// Connection `number` belongs to `owner(number)`, its requests are of the kind `work(number)`, and each takes
    /// `time(number)` microseconds. `works`: whether the loop always has other work, too. `clock`: microseconds of a
    /// simulated clock, by which nothing but requests takes time; then others have the processor for `lost(number)`
    /// microseconds before the end of each request.
    init(
        _ count: Int, _ kind: PollerKind, works: Bool = false, work: (Int) -> WorkKind? = { _ in nil },
        time: (Int) -> UInt32 = { _ in 200 }, clock: Shared<Int>? = nil, lost: (Int) -> Int = { _ in 0 },
        owner: (Int) -> Holder
    ) throws {
        let start = ContinuousClock.now
        let now = { @Sendable in clock.map { start + .microseconds($0.value) } ?? .now }
        let lostInAll = Shared(0)
        loop = try EventLoop(
            memory: MemoryBudget(bytesMax: 64 << 20), timeouts: EventLoop.Timeouts(idle: 1_000_000, stall: 1_000_000),
            poller: LoggingPoller(try kind.make(), log),
            now: now, processorTime: { now() - start - .microseconds(lostInAll.value) },
            letOthersRun: { [pauses] in pauses.increment() })
        let other = EventLoop.Work(
            perform: { [log] in
                log.with { $0.performed += 1 }
                return true
            }, awoke: {})
        loop.start(name: "crowd", work: works ? other : nil)
        for number in 0..<count {
            var ends: [CInt] = [0, 0]
            try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
            try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
            clients.append(ends[1])
            let (work, time, lost) = (work(number), time(number), lost(number))
            Connection.start(ends[0], on: loop, of: owner(number)) { [served, log] _ in
                SlowHandler(number, served, log, work) {
                    guard let clock else { return _ = usleep(time) }
                    lostInAll.with { $0 += lost }
                    clock.with { $0 += Int(time) + lost }
                }
            }
        }
    }

    deinit {
        loop.stop()
        for client in clients { close(client) }
    }

    /// Has the loop find all connections ready at once, in the order of their numbers.
    func sendAtOnce(bytes: Int = 1) {
        let (began, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        loop.execute {
            began.signal()
            gate.wait()
        }
        began.wait()
        for client in clients {
            let sent = [UInt8](repeating: 1, count: bytes)
            _ = write(client, sent, bytes)
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

    @Test(
        "A loop looks which others are ready when a turn's time is over, however few connections it has served",
        arguments: [20, 200])
    func lengthOfTurn(count: Int) throws {
        let crowd = try Crowd(count, .systems) { _ in .address(UInt32(1)) }
        crowd.sendAtOnce()
        #expect(becomesTrue { crowd.served.value.count == count })
        // Each takes as long as a turn.
        let most = crowd.log.value.between.map(\.served).max()
        #expect(most ?? 0 <= 2)
    }

    @Test("A peer that was served while others had the processor does not wait longer for its next turn")
    func processorOfOthers() throws {
        let crowd = try Crowd(
            200, .systems, time: { _ in 50 }, clock: Shared(0), lost: { $0 == 50 ? 3000 : 0 },
            owner: { .address(UInt32($0 == 50 || $0 == 150 ? 2 : 1)) })
        crowd.sendAtOnce()
        #expect(becomesTrue { crowd.served.value.count == 200 })
        let places = try [50, 150].map { try #require(crowd.served.value.firstIndex(of: $0)) }
        #expect(places.allSatisfy { $0 < 6 }, "\(places)")
    }

    @Test("While many connect, a loop accepts them for a turn only")
    func accepting() throws {
        let (time, accepted, log) = (Shared(0), Shared(0), Shared(LookLog()))
        let start = ContinuousClock.now
        let loop = try EventLoop(
            memory: MemoryBudget(bytesMax: 64 << 20), timeouts: EventLoop.Timeouts(idle: 1_000_000, stall: 1_000_000),
            poller: LoggingPoller(try PollerKind.systems.make(), log),
            now: { start + .microseconds(time.value) })
        let listener = try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0))[0]
        let clients = try (0..<40).map { _ in try Socket.connect(to: listener.endpoint, milliseconds: 1000) }
        loop.start(name: "accepting")
        loop.listen(on: listener.descriptor) { descriptor in
            close(descriptor)
            time.with { $0 += 30 }
            log.with { $0.served += 1 }
            accepted.increment()
        } refuse: { _ in
        }
        #expect(becomesTrue { accepted.value == clients.count })
        loop.stop()
        for client in clients { close(client) }
        let most = log.value.between.map(\.served).max()
        #expect(most == (Int(Limits.readyTurnMicroseconds) + 29) / 30)
    }

    @Test("A loop looks which others are ready earlier while it serves queries that follow")
    func lengthOfFollowingTurn() throws {
        let turns = [
            (WorkKind.prompt, Limits.readyTurnMicroseconds), (.following, Limits.followingTurnMicroseconds),
        ]
        for (work, turn) in turns {
            let crowd = try Crowd(
                200, .systems, work: { _ in work }, time: { _ in 30 }, clock: Shared(0),
                owner: { _ in .address(UInt32(1)) })
            crowd.sendAtOnce()
            #expect(becomesTrue { crowd.served.value.count == 200 })
            // Now the kind of each connection is known.
            crowd.loop.execute { [log = crowd.log] in log.with { $0 = LookLog() } }
            crowd.sendAtOnce()
            #expect(becomesTrue { crowd.served.value.count == 400 })
            let most = crowd.log.value.between.map(\.served).max()
            #expect(most == (Int(turn) + 29) / 30)
        }
    }

    @Test("A peer with proofs waits for one peer whose queries follow, also when it has had more time than they")
    func kinds() throws {
        let crowd = try Crowd(
            101, .systems, work: { $0 == 50 ? .prompt : .following }, time: { $0 == 50 ? 1000 : 100 },
            owner: { .address(UInt32($0)) })
        for round in 1...3 {
            crowd.sendAtOnce()
            #expect(becomesTrue { crowd.served.value.count == 101 * round })
        }
        // In the first round nothing is known of anybody.
        for round in 1...2 {
            let place = try #require(crowd.served.value[(101 * round)...].firstIndex(of: 50))
            #expect(place - 101 * round <= 2)
        }
    }

    @Test(
        "A long frame is received as it comes, also on a connection that follows",
        arguments: [(3000, 3), (200_000, 20)])
    func longFrame(bytes: Int, portionsMax: Int) throws {
        let server = try EchoServer(idle: 1_000_000, stall: 1_000_000)
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
        try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
        let peer = RawPeer(descriptor: ends[1])
        let portions = Shared<[Int]>([])
        Connection.start(ends[0], on: server.loop) { _ in FollowingHandler(portions, longFrame: bytes) }
        peer.send([UInt8](repeating: 1, count: 10))
        #expect(becomesTrue { portions.value == [10] })
        peer.send([UInt8](repeating: 2, count: bytes))
        #expect(becomesTrue { portions.value.last == bytes })
        // The first portion is small: nobody knows yet that a long frame begins.
        #expect(portions.value.count <= portionsMax, "\(portions.value)")
    }

    @Test("Queries that follow are taken in small portions, and other requests as they come")
    func portionsOfQueries() throws {
        for (work, most) in [(WorkKind.following, Limits.followingTurnBytes), (.prompt, 20_000)] {
            let crowd = try Crowd(1, .systems, work: { _ in work }, owner: { _ in .address(UInt32(1)) })
            crowd.sendAtOnce()
            #expect(becomesTrue { crowd.served.value.count == 1 })
            crowd.sendAtOnce(bytes: 20_000)
            #expect(becomesTrue { crowd.served.value.count >= (work == .following ? 20 : 2) })
            #expect(crowd.log.value.receivedMost == most)
        }
    }

    @Test("While connections wait, a loop performs several portions of work in a turn, and otherwise one")
    func portions() throws {
        let crowd = try Crowd(200, .systems, works: true) { _ in .address(UInt32(1)) }
        crowd.loop.execute { [log = crowd.log] in log.with { $0 = LookLog() } }
        crowd.sendAtOnce()
        #expect(becomesTrue { crowd.served.value.count == 200 })
        let between = crowd.log.value.between
        let first = try #require(between.firstIndex { $0.served > 0 && $0.performed > 0 })
        #expect(between[..<first].allSatisfy { $0.performed <= 1 })
        #expect(between.contains { $0.performed > 1 })
    }

    @Test("A loop lets other threads run while it always has something to do, and otherwise need not")
    func pauses() throws {
        let crowd = try Crowd(200, .systems) { _ in .address(UInt32(1)) }
        crowd.sendAtOnce()
        #expect(becomesTrue { crowd.served.value.count == 200 })
        // That took at least 40 ms.
        #expect(crowd.pauses.value >= 10)
        let idle = try Crowd(1, .systems) { _ in .address(UInt32(1)) }
        idle.sendAtOnce()
        #expect(becomesTrue { idle.served.value.count == 1 })
        #expect(idle.pauses.value == 0)
    }

    @Test("Ready connections of one peer are served in the order in which they became ready")
    func order() throws {
        let crowd = try Crowd(200, .systems) { _ in .address(UInt32(1)) }
        crowd.sendAtOnce()
        #expect(becomesTrue { crowd.served.value.count == 200 })
        #expect(crowd.served.value == Array(0..<200))
    }
}

/// Handles bytes as queries that wait, and what begins with a 2 as a frame of `longFrame` bytes.
private final class FollowingHandler: ConnectionHandler {
    private let longFrame: Int
    private let portions: Shared<[Int]>
    let isBusy = false

    init(_ portions: Shared<[Int]>, longFrame: Int) {
        (self.portions, self.longFrame) = (portions, longFrame)
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        portions.with { $0.append(range.count) }
        guard buffer.bytes(range).first == 2 else {
            return Transport.Progress(consumed: range.count, nextFrameBytes: 0, kind: .following)
        }
        let isWhole = range.count == longFrame
        return Transport.Progress(
            consumed: isWhole ? range.count : 0, nextFrameBytes: longFrame,
            kind: isWhole ? .prompt : nil)
    }
    func drained() {}
    func closed() {}
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
