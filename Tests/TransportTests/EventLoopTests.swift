import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

@Suite("Connections on an event loop", .serialized)
struct EventLoopTests {
    @Test("Frames come through however they are cut in two", arguments: PollerKind.allCases)
    func everyCut(kind: PollerKind) throws {
        let server = try EchoServer(kind)
        let peer = try RawPeer(server)
        let bytes = frame([]) + frame([1]) + frame(pattern(9)) + frame([]) + frame(pattern(20))
        for cut in 0...bytes.count {
            peer.send(bytes[..<cut])
            server.settle()
            peer.send(bytes[cut...])
            #expect(peer.receive(bytes.count) == bytes, "cut at \(cut)")
        }
        #expect(server.counts.frames.value == 5 * (bytes.count + 1))
    }

    @Test("Large and small frames come through in random pieces", arguments: PollerKind.allCases)
    func randomPieces(kind: PollerKind) throws {
        var random = SeededGenerator(seed: runSeed)
        let server = try EchoServer(kind)
        let peer = try RawPeer(server)
        var bytes: [UInt8] = []
        for number in 0..<60 {
            let most = [10, 3000, 20_000, 300_000][number % 4]
            bytes += frame(pattern(Int.random(in: 0...most, using: &random), from: number))
        }
        bytes += frame(pattern(Limits.frameBodyBytesMax))
        let stream = bytes
        var cuts = [0]
        while let last = cuts.last, last < stream.count {
            let most = [3, 400, 70_000, 1_000_000][Int.random(in: 0..<4, using: &random)]
            cuts.append(min(stream.count, last + Int.random(in: 1...most, using: &random)))
        }
        let pieces = zip(cuts, cuts.dropFirst()).map { stream[$0..<$1] }
        Thread { for piece in pieces { peer.send(piece) } }.start()
        let isSame = peer.receive(stream.count) == stream
        #expect(isSame, "seed \(runSeed)")
        #expect(server.counts.frames.value == 61)
    }

    @Test("Pauses and resumes lose and repeat nothing", arguments: PollerKind.allCases)
    func pauses(kind: PollerKind) throws {
        var random = SeededGenerator(seed: runSeed)
        let server = try EchoServer(kind, EchoBehaviour(pausesAfter: 3))
        let peer = try RawPeer(server)
        var bytes: [UInt8] = []
        for number in 0..<600 {
            let most = number % 50 == 0 ? 300_000 : 4000
            bytes += frame(pattern(Int.random(in: 0...most, using: &random), from: number))
        }
        let stream = bytes
        Thread { peer.send(stream) }.start()
        let isSame = peer.receive(stream.count) == stream
        #expect(isSame, "seed \(runSeed)")
        #expect(server.counts.frames.value == 600)
        #expect(server.counts.pauses.value == 200)
    }

    @Test("A peer that reads late gets everything", arguments: PollerKind.allCases)
    func slowReader(kind: PollerKind) throws {
        let server = try EchoServer(kind)
        let peer = try RawPeer(server)
        let one = frame(pattern(500_000))
        for _ in 0..<40 { peer.send(one) }
        #expect(becomesTrue { server.counts.frames.value == 40 })
        server.settle()
        #expect(server.loop.unsentBytes.load(ordering: .relaxed) > 0)
        for number in 0..<40 {
            let isSame = peer.receive(one.count) == one
            #expect(isSame, "frame \(number)")
        }
        #expect(becomesTrue { server.counts.drained.value > 0 })
        #expect(server.loop.unsentBytes.load(ordering: .relaxed) == 0)
    }

    @Test(
        "Closing delivers everything that was sent before the end", arguments: PollerKind.allCases,
        [0, 1, 100_000, 8_000_000])
    func closing(kind: PollerKind, count: Int) throws {
        let server = try EchoServer(kind, EchoBehaviour(closesAfterSending: count))
        let peer = try RawPeer(server)
        // Bytes behind the first frame are ignored, and the answer to it still arrives.
        let isSent = Shared(false)
        Thread {
            let isTaken = peer.send(frame([1, 2, 3]) + pattern(3_000_000))
            isSent.with { $0 = isTaken }
        }.start()
        let isSame = peer.receive(count) == pattern(count)
        #expect(isSame)
        #expect(peer.hasEndedInOrder())
        #expect(becomesTrue { isSent.value })
        #expect(shutdown(peer.descriptor, CInt(SHUT_RDWR)) == 0)
        #expect(becomesTrue { server.counts.closed.value == 1 })
    }

    @Test("A connection is told once when its peer goes away", arguments: PollerKind.allCases)
    func peerLeaves(kind: PollerKind) throws {
        let server = try EchoServer(kind)
        var peer: RawPeer? = try RawPeer(server)
        peer?.send(frame([1]) + [9, 0])
        #expect(becomesTrue { server.counts.frames.value == 1 })
        peer = nil
        #expect(becomesTrue { server.counts.closed.value == 1 })
        server.settle()
        #expect(server.counts.closed.value == 1)
        #expect(server.counts.frames.value == 1)
    }

    @Test("Stopping a loop closes its connections")
    func stopping() throws {
        var server: EchoServer? = try EchoServer()
        let counts = try #require(server?.counts)
        let peer = try RawPeer(try #require(server))
        peer.send(frame([5]))
        #expect(peer.receive(5) == frame([5]))
        server = nil
        #expect(peer.hasEnded())
        #expect(counts.closed.value == 1)
    }

    @Test("A silent connection is closed after the idle time, not before", arguments: PollerKind.allCases)
    func idle(kind: PollerKind) throws {
        let server = try EchoServer(kind, idle: 5000)
        let peer = try RawPeer(server)
        #expect(becomesTrue { server.counts.opened.value == 1 })
        server.advance(5000)
        #expect(peer.isQuiet())
        peer.send(frame([1]))
        #expect(peer.receive(5) == frame([1]))
        server.advance(5000)
        #expect(peer.isQuiet())
        // The sweep comes once a second.
        server.advance(1000)
        #expect(peer.hasEnded())
        #expect(becomesTrue { server.counts.closed.value == 1 })
    }

    @Test("A connection with a request in flight is not idle")
    func busy() throws {
        let server = try EchoServer(.systems, EchoBehaviour(isBusy: true), idle: 5000)
        let peer = try RawPeer(server)
        #expect(becomesTrue { server.counts.opened.value == 1 })
        for _ in 0..<5 { server.advance(5001) }
        peer.send(frame([1]))
        #expect(peer.receive(5) == frame([1]))
    }

    @Test(
        "A frame that is begun and not finished in time closes the connection, however it trickles",
        arguments: PollerKind.allCases)
    func slowFrame(kind: PollerKind) throws {
        let server = try EchoServer(kind, stall: 5000)
        let (slow, good) = (try RawPeer(server), try RawPeer(server))
        #expect(becomesTrue { server.counts.opened.value == 2 })
        slow.send(frame(pattern(100)).prefix(10))
        for _ in 0..<5 {
            server.advance(1000)
            #expect(slow.isQuiet())
            slow.send([1])
            good.send(frame([1]))
            #expect(good.receive(5) == frame([1]))
        }
        server.advance(1001)
        #expect(slow.hasEnded())
        #expect(becomesTrue { server.counts.closed.value == 1 })
        server.advance(5001)
        #expect(good.isQuiet())
    }

    @Test("A connection whose answers nobody takes is closed after the stall time")
    func unreadAnswers() throws {
        let server = try EchoServer(.systems, EchoBehaviour(), idle: 1_000_000, stall: 5000)
        let peer = try RawPeer(server)
        let one = frame(pattern(1_000_000))
        for _ in 0..<20 { peer.send(one) }
        #expect(becomesTrue { server.counts.frames.value == 20 })
        server.advance(1)
        #expect(server.counts.closed.value == 0)
        server.advance(6000)
        #expect(becomesTrue { server.counts.closed.value == 1 })
        #expect(server.loop.unsentBytes.load(ordering: .relaxed) == 0)
    }

    @Test("A connection that is paused by this side is not stalled by half a frame")
    func pausedIsNotStalled() throws {
        let server = try EchoServer(
            .systems, EchoBehaviour(pausesAfter: 1, isBusy: true, staysPaused: true), idle: 1_000_000, stall: 5000)
        let peer = try RawPeer(server)
        peer.send(frame([1]) + frame([1, 2, 3]).prefix(5))
        #expect(peer.receive(5) == frame([1]))
        server.advance(6000)
        server.advance(6000)
        #expect(peer.isQuiet())
        #expect(server.counts.closed.value == 0)
    }

    @Test("2,000 connections are served at once", arguments: PollerKind.allCases)
    func many(kind: PollerKind) throws {
        var limit = rlimit()
        #if os(Linux)
        let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let files = RLIMIT_NOFILE
        #endif
        try #require(getrlimit(files, &limit) == 0)
        if limit.rlim_cur < 6000 {
            limit.rlim_cur = min(limit.rlim_max, 6000)
            try #require(setrlimit(files, &limit) == 0, "needs 6,000 descriptors")
        }
        let server = try EchoServer(kind)
        let peers = try (0..<2000).map { _ in try RawPeer(server) }
        for round in 0..<2 {
            for (number, peer) in peers.enumerated() { peer.send(frame(pattern(50, from: number + round)).prefix(20)) }
            for (number, peer) in peers.enumerated() {
                peer.send(frame(pattern(50, from: number + round)).dropFirst(20))
            }
            for (number, peer) in peers.enumerated() {
                #expect(peer.receive(54) == frame(pattern(50, from: number + round)), "connection \(number)")
            }
        }
        #expect(server.counts.opened.value == 2000)
        #expect(server.counts.closed.value == 0)
        withExtendedLifetime(peers) {}
    }
}

@Suite("Memory for receiving", .serialized)
struct ReceiveMemoryTests {
    @Test("A connection without memory for receiving is served when memory is free")
    func waits() throws {
        let server = try EchoServer(memory: .waitedFor(bytesMax: 100_000))
        let (first, second) = (try RawPeer(server), try RawPeer(server))
        let large = frame(pattern(150_000))
        first.send(large.prefix(100_000))
        // The first connection holds all of the memory as soon as half its frame is there.
        #expect(becomesTrue { server.counts.halves.value == 1 && server.counts.opened.value == 2 })
        second.send(frame([1, 2, 3]))
        server.settle()
        usleep(50_000)
        #expect(second.isQuiet())
        first.send(large.dropFirst(100_000))
        #expect(first.receive(large.count) == large)
        #expect(second.receive(7) == frame([1, 2, 3]))
        #expect(server.counts.closed.value == 0)
    }

    @Test("The memory of an unfinished frame is given back when the frame is finished")
    func givenBack() throws {
        let memory = MemoryBudget(bytesMax: 64 << 20)
        let server = try EchoServer(memory: memory)
        let peers = try (0..<4).map { _ in try RawPeer(server) }
        let one = frame(pattern(150_000))
        for peer in peers { peer.send(one.prefix(100_000)) }
        #expect(becomesTrue { server.counts.halves.value == 4 })
        #expect(memory.heldBytes >= 4 * 100_000 && memory.heldBytes <= 4 * one.count)
        for peer in peers {
            peer.send(one.dropFirst(100_000))
            #expect(peer.receive(one.count) == one)
        }
        server.settle()
        #expect(memory.heldBytes == 0)
    }

    @Test("Frames that a handler keeps are unchanged while more arrive")
    func keptFrames() throws {
        var random = SeededGenerator(seed: runSeed)
        let server = try EchoServer(.systems, EchoBehaviour(keepsFrames: true))
        let peer = try RawPeer(server)
        let frames = (0..<200).map { number in
            frame(pattern(Int.random(in: 0...Limits.copiedFrameBytesMax * 3, using: &random), from: number * 1000))
        }
        for frame in frames { peer.send(frame) }
        #expect(becomesTrue { server.counts.frames.value == frames.count })
        let kept = server.counts.kept.value
        for (number, frame) in frames.enumerated() {
            let isSame = kept[number].bytes.elementsEqual(frame)
            #expect(isSame, "seed \(runSeed), frame \(number)")
        }
    }

    @Test("A method of the loop's thread that is called on another thread stops the process")
    func otherThread() async {
        await #expect(processExitsWith: .failure) {
            let loop = try EventLoop(
                memory: .waitedFor(bytesMax: 1 << 20), timeouts: EventLoop.Timeouts(idle: 60_000, stall: 60_000)
            )
            loop.start(name: "test")
            loop.assertOnThread()
        }
        await #expect(processExitsWith: .success) {
            let loop = try EventLoop(
                memory: .waitedFor(bytesMax: 1 << 20), timeouts: EventLoop.Timeouts(idle: 60_000, stall: 60_000)
            )
            loop.start(name: "test")
            await withCheckedContinuation { continuation in
                loop.execute {
                    loop.assertOnThread()
                    continuation.resume()
                }
            }
        }
    }

    @Test("A handler that says it handled more than was received stops the process")
    func handledTooMuch() async {
        await #expect(processExitsWith: .failure) {
            let server = try EchoServer(.systems, EchoBehaviour(overstatesProgress: true))
            let peer = try RawPeer(server)
            peer.send(frame(pattern(9)))
            server.settle()
            _ = peer.receive(1)
        }
    }
}
