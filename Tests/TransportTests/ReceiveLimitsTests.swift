import Core
import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// What one byte more, or one connection more, than a limit of the memory for receiving changes.
@Suite(.serialized) struct ReceiveLimitsTests {
    @Test("An unfinished frame takes no more memory than it has bytes up to its limit, and twice that with one more")
    func unfinishedFrame() throws {
        let limit = Limits.unfinishedFrameBytesMax
        let uncounted = Limits.uncountedFrameBytesMax
        let cases = [(uncounted, 0), (uncounted + 1, uncounted + 1), (limit, limit), (limit + 1, 2 * (limit + 1))]
        for (sent, held) in cases {
            let memory = MemoryBudget(bytesMax: Limits.requestMemoryBytesMin)
            let server = try EchoServer(memory: memory)
            let first = try RawPeer(server)
            let large = frame(pattern(150_000))
            first.send(large.prefix(sent))
            #expect(becomesTrue { server.counts.unfinishedBytes.value == sent })
            server.settle()
            #expect(memory.heldBytes == held)
            first.send(large.dropFirst(sent))
            #expect(first.receive(large.count) == large)
            server.settle()
            #expect(memory.heldBytes == 0)
        }
    }

    @Test("A connection that is closed gives its memory back, whatever it had begun")
    func closedConnections() throws {
        let memory = MemoryBudget(bytesMax: Limits.requestMemoryBytesMin)
        let server = try EchoServer(memory: memory)
        for sent in [20, 5000, 40_000, 149_000] {
            do {
                let peer = try RawPeer(server)
                peer.send(frame(pattern(150_000)).prefix(sent))
                #expect(becomesTrue { server.counts.unfinishedBytes.value == sent })
                server.settle()
            }
            #expect(becomesTrue { memory.heldBytes == 0 })
        }
    }

    @Test("A frame in a connection's own buffer is copied up to its limit, and stays there with one byte more")
    func keptFrame() throws {
        let memory = MemoryBudget(bytesMax: Limits.requestMemoryBytesMin)
        let account = memory.account(for: .service)
        let limit = Limits.copiedFrameBytesMax
        let scratch = ReceiveBuffer()
        #expect(scratch.bytesToKeep(0..<limit + 1) == limit + 1)
        var kept: FrameBytes?
        do {
            let charge = try #require(account.reserve(2 * limit, isUrgent: false))
            let own = ReceiveBuffer(capacity: 2 * limit, account, charge)
            #expect(own.bytesToKeep(0..<limit) == limit)
            #expect(own.bytesToKeep(0..<limit + 1) == 0)
            kept = FrameBytes(own, 0..<limit)
        }
        #expect(memory.heldBytes == 0, "a copied frame keeps its buffer")
        do {
            let charge = try #require(account.reserve(2 * limit, isUrgent: false))
            kept = FrameBytes(ReceiveBuffer(capacity: 2 * limit, account, charge), 0..<limit + 1)
        }
        #expect(memory.heldBytes == 2 * limit)
        #expect(kept?.bytes.count == limit + 1)
        kept = nil
        #expect(memory.heldBytes == 0)
    }

    /// Handles nothing, and counts the connections that have received something.
    private final class Hoarder: ConnectionHandler {
        let isBusy = false
        let receiving: Shared<Int>

        init(_ receiving: Shared<Int>) {
            self.receiving = receiving
        }

        func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
            if range.count == Limits.receiveBufferBytes / 2 { receiving.increment() }
            return Transport.Progress(consumed: 0, nextFrameBytes: Limits.receiveBufferBytes / 2 + 1)
        }

        func drained() {}
        func closed() {}
    }

    @Test("The connections of a client receive until their buffers reach the limit; one more waits for memory")
    func clientMemory() throws {
        let most = Limits.clientReceiveBytesMax / (Limits.receiveBufferBytes / 2)
        let receiving = Shared(0)
        let loop = try EventLoop.startedForClient(name: "client memory")
        defer { loop.stop() }
        var peers: [CInt] = []
        defer { for peer in peers { close(peer) } }
        // Of each frame one byte is missing, and the buffer has room for it.
        let bytes = [UInt8](repeating: 0, count: Limits.receiveBufferBytes / 2)
        for number in 0...most {
            var ends: [CInt] = [-1, -1]
            try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
            try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) != -1)
            peers.append(ends[1])
            Connection.start(ends[0], on: loop) { _ in Hoarder(receiving) }
            let sent = bytes.withUnsafeBytes { send(ends[1], $0.baseAddress, $0.count, 0) }
            try #require(sent == bytes.count)
            if number < most { #expect(becomesTrue { receiving.value == number + 1 }) }
        }
        usleep(50_000)
        #expect(receiving.value == most)
        close(peers.removeFirst())
        #expect(becomesTrue { receiving.value == most + 1 })
    }

    // MARK: After the end of a loop

    private final class Token: Sendable {}

    private func endedLoop() throws -> EventLoop {
        let loop = try EventLoop(
            memory: .waitedFor(bytesMax: 1 << 20), timeouts: EventLoop.Timeouts(idle: 60_000, stall: 60_000))
        loop.start(name: "ended")
        loop.stop()
        return loop
    }

    @Test("A task for a loop that has ended is not run and not kept")
    func taskAfterTheEnd() throws {
        let loop = try endedLoop()
        weak var kept: Token?
        let isRun = Shared(false)
        do {
            let token = Token()
            kept = token
            let isTaken = loop.execute {
                _ = token
                isRun.with { $0 = true }
            }
            #expect(!isTaken)
        }
        #expect(kept == nil, "the loop keeps a task that it will never run")
        #expect(!isRun.value)
    }

    @Test("A task that is given to a loop before its end is run, and all are told")
    func tasksAtTheEnd() throws {
        for _ in 0..<50 {
            let loop = try EventLoop(
                memory: .waitedFor(bytesMax: 1 << 20),
                timeouts: EventLoop.Timeouts(idle: 60_000, stall: 60_000))
            loop.start(name: "ending")
            let (taken, run, isOver) = (Shared(0), Shared(0), Shared(0))
            let giver = Thread {
                while loop.execute({ run.increment() }) { taken.increment() }
                isOver.increment()
            }
            giver.start()
            usleep(200)
            loop.stop()
            #expect(becomesTrue { isOver.value == 1 })
            #expect(run.value == taken.value)
        }
    }

    @Test("A connection that is started on a loop that has ended is closed")
    func connectionAfterTheEnd() throws {
        let loop = try endedLoop()
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
        defer { close(ends[1]) }
        try #require(fcntl(ends[1], F_SETFL, O_NONBLOCK) != -1)
        Connection.start(ends[0], on: loop) { _ in Hoarder(Shared(0)) }
        var byte: UInt8 = 0
        #expect(recv(ends[1], &byte, 1, 0) == 0, "the descriptor is still open")
    }
}
