import Core
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing
import Transport

/// A stream that notes how much each call of `send` was given.
private final class RecordingStream: ByteStream {
    private let inner: PlainStream
    let sends = Shared<[Int]>([])
    /// Bytes that a call takes at most; then it would block.
    let bytesTaken = Shared(Int.max)

    init(_ descriptor: CInt) {
        inner = PlainStream(descriptor)
    }

    var descriptor: CInt { inner.descriptor }
    var holdsBytes: Bool { false }
    var peerCertificate: PeerCertificate? { nil }
    var failure: String? { nil }

    func receive(into room: UnsafeMutableRawBufferPointer) -> Transfer { inner.receive(into: room) }

    func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        sends.with { $0.append(bytes.count) }
        let count = min(bytes.count, bytesTaken.value)
        guard count > 0 else { return .wouldBlock(.writing) }
        return inner.send(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }

    func endSending() { inner.endSending() }
    func close() { inner.close() }
}

/// A connection on a socket pair.
private final class Pair {
    let loop: EventLoop
    let memory = MemoryBudget(bytesMax: 64 << 20)
    let stream: RecordingStream
    let peer: RawPeer
    let connection: Connection
    let counts = EchoServer.Counts()

    init(_ behaviour: EchoBehaviour = EchoBehaviour()) throws {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
        try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) != -1)
        peer = RawPeer(descriptor: ends[1])
        stream = RecordingStream(ends[0])
        loop = try EventLoop(memory: memory, timeouts: EventLoop.Timeouts(idle: 1_000_000, stall: 1_000_000))
        loop.start(name: "pair")
        let made = Shared<Connection?>(nil)
        let counts = counts
        Connection.start(stream, on: loop) { connection in
            made.with { $0 = connection }
            return EchoHandler(connection, behaviour, counts)
        }
        try #require(becomesTrue { made.value != nil })
        connection = try #require(made.value)
    }

    deinit { loop.stop() }

    func settle() {
        for _ in 0..<3 {
            let done = DispatchSemaphore(value: 0)
            loop.execute { done.signal() }
            done.wait()
        }
    }
}

@Suite("Answers that leave together", .serialized)
struct GatheringTests {
    @Test("What is sent while somebody gathers leaves in one call, in order")
    func oneCall() throws {
        let pair = try Pair()
        pair.connection.send([1])
        pair.connection.send([2])
        #expect(pair.stream.sends.value == [1, 1])
        pair.connection.beginGathering()
        pair.connection.beginGathering()
        for number in 3..<10 { pair.connection.send([UInt8(number)]) }
        #expect(!pair.connection.endGathering())
        #expect(pair.stream.sends.value == [1, 1])
        #expect(pair.connection.unsentBytes == 7)
        #expect(pair.loop.unsentBytes.load(ordering: .relaxed) == 7)
        #expect(pair.connection.endGathering())
        #expect(pair.stream.sends.value == [1, 1, 7])
        #expect(pair.peer.receive(9) == Array(1..<10))
        #expect(pair.connection.unsentBytes == 0)
        pair.connection.send([10])
        #expect(pair.stream.sends.value == [1, 1, 7, 1])
    }

    @Test("More than a connection gathers leaves while somebody still gathers")
    func tooMuch() throws {
        let pair = try Pair()
        let half = Limits.gatheredBytesMax / 2
        pair.connection.beginGathering()
        pair.connection.send(pattern(half))
        pair.connection.send(pattern(half))
        #expect(pair.stream.sends.value == [])
        pair.connection.send([1])
        try #require(pair.stream.sends.value == [2 * half + 1])
        #expect(pair.connection.unsentBytes == 0)
        #expect(pair.peer.receive(2 * half + 1) == pattern(half) + pattern(half) + [1])
        // What was sent early is all that was.
        #expect(pair.connection.endGathering())
        #expect(pair.stream.sends.value == [2 * half + 1])
    }

    @Test("What a handler answers to the bytes of one read leaves in one call")
    func oneRead() throws {
        let pair = try Pair()
        let bytes = (0..<20).flatMap { frame([UInt8($0)]) }
        pair.peer.send(bytes)
        #expect(pair.peer.receive(bytes.count) == bytes)
        #expect(pair.counts.frames.value == 20)
        #expect(pair.stream.sends.value == [bytes.count])
    }

    @Test("A handler that pauses because of gathered answers goes on when they are sent")
    func pausesWhileUnsent() throws {
        let pair = try Pair(EchoBehaviour(pausesWhileUnsent: true))
        let bytes = (0..<20).flatMap { frame([UInt8($0)]) }
        pair.peer.send(bytes)
        #expect(becomesTrue { pair.counts.frames.value == 20 })
        if pair.counts.frames.value == 20 { #expect(pair.peer.receive(bytes.count) == bytes) }
        #expect(pair.counts.pauses.value > 0)
    }

    @Test("The memory of gathered answers is held until they are sent")
    func memory() throws {
        let pair = try Pair()
        let charge = try #require(pair.connection.memory.reserve(1000, isUrgent: false))
        pair.connection.beginGathering()
        pair.connection.send([1, 2, 3], charge)
        #expect(pair.memory.heldBytes == 1000)
        _ = pair.connection.endGathering()
        #expect(pair.memory.heldBytes == 0)
    }

    @Test("What the socket does not take of gathered answers is sent later, with the memory for it")
    func takenInParts() throws {
        let pair = try Pair()
        let charge = try #require(pair.connection.memory.reserve(1000, isUrgent: false))
        pair.stream.bytesTaken.with { $0 = 4 }
        pair.connection.beginGathering()
        pair.connection.send(pattern(10), charge)
        #expect(!pair.connection.endGathering())
        #expect(pair.peer.receive(10) == pattern(10))
        #expect(becomesTrue { pair.memory.heldBytes == 0 && pair.connection.unsentBytes == 0 })
        #expect(pair.stream.sends.value.first == 10)
    }

    @Test("A connection that is closed meanwhile sends what was gathered before it ends")
    func closing() throws {
        let pair = try Pair()
        pair.connection.beginGathering()
        pair.connection.send([1, 2, 3])
        pair.connection.close()
        pair.settle()
        pair.connection.send([4])
        _ = pair.connection.endGathering()
        #expect(pair.peer.receive(4) == [1, 2, 3])
    }

    @Test("A connection that has ended meanwhile gives the memory back")
    func ended() throws {
        let pair = try Pair()
        let charge = try #require(pair.connection.memory.reserve(1000, isUrgent: false))
        pair.connection.beginGathering()
        pair.connection.send([1, 2, 3], charge)
        shutdown(pair.peer.descriptor, CInt(SHUT_RDWR))
        #expect(becomesTrue { pair.counts.closed.value == 1 })
        #expect(pair.memory.heldBytes == 0)
        #expect(!pair.connection.endGathering())
        #expect(pair.connection.unsentBytes == 0)
    }
}
