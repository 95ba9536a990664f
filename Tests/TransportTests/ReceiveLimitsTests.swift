import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

/// What one byte more, or one connection more, than a limit of the memory for receiving changes.
@Suite(.serialized) struct ReceiveLimitsTests {
    @Test("An unfinished frame is set aside up to its limit, and keeps the buffer with one byte more")
    func unfinishedFrame() throws {
        for excess in [0, 1] {
            let server = try EchoServer(bufferBytes: Limits.receiveBufferBytes)
            let (first, second) = (try RawPeer(server), try RawPeer(server))
            let (large, small) = (frame(pattern(150_000)), frame([1, 2, 3]))
            let sent = Limits.unfinishedFrameBytesMax + excess
            first.send(large.prefix(sent))
            #expect(becomesTrue { server.counts.unfinishedBytes.value == sent && server.counts.opened.value == 2 })
            server.settle()
            second.send(small)
            if excess == 0 {
                #expect(second.receive(small.count) == small)
            } else {
                usleep(50_000)
                #expect(second.isQuiet())
            }
            first.send(large.dropFirst(sent))
            #expect(first.receive(large.count) == large)
            if excess > 0 { #expect(second.receive(small.count) == small) }
        }
    }

    @Test("A kept frame is copied up to its limit, and keeps the buffer with one byte more")
    func keptFrame() throws {
        for excess in [0, 1] {
            let server = try EchoServer(
                .systems, EchoBehaviour(keepsFrames: true), bufferBytes: Limits.receiveBufferBytes)
            let (first, second) = (try RawPeer(server), try RawPeer(server))
            first.send(frame(pattern(Limits.copiedFrameBytesMax - 4 + excess)))
            #expect(becomesTrue { server.counts.kept.value.count == 1 && server.counts.opened.value == 2 })
            second.send(frame([1, 2, 3]))
            if excess > 0 {
                usleep(50_000)
                #expect(server.counts.kept.value.count == 1)
                server.counts.kept.with { $0 = [] }
            }
            #expect(becomesTrue { server.counts.kept.value.contains { $0.bytes.count == 7 } })
        }
    }

    /// Handles nothing, and counts the connections that have received something.
    private final class Hoarder: ConnectionHandler {
        let isBusy = false
        let receiving: Shared<Int>

        init(_ receiving: Shared<Int>) {
            self.receiving = receiving
        }

        func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
            if range.count > Limits.unfinishedFrameBytesMax { receiving.increment() }
            return Transport.Progress(consumed: 0, nextFrameBytes: Limits.receiveBufferBytes)
        }

        func drained() {}
        func closed() {}
    }

    @Test("The connections of a client receive until their buffers reach the limit; one more waits for memory")
    func clientMemory() throws {
        let most = Limits.clientReceiveBytesMax / Limits.receiveBufferBytes
        let receiving = Shared(0)
        let loop = try EventLoop.startedForClient(name: "client memory")
        defer { loop.stop() }
        var peers: [CInt] = []
        defer { for peer in peers { close(peer) } }
        let bytes = [UInt8](repeating: 0, count: Limits.unfinishedFrameBytesMax + 1)
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
            buffers: ReceiveBufferPool(bytesMax: 1 << 20), timeouts: EventLoop.Timeouts(idle: 60_000, stall: 60_000))
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
                buffers: ReceiveBufferPool(bytesMax: 1 << 20),
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
