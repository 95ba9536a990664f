import Core
import Foundation
import Platform
import TestSupport
import Testing
import Transport

/// What an echo does besides echoing.
struct EchoBehaviour: Sendable {
    /// Pauses reading after this number of frames, and resumes it from another thread.
    var pausesAfter = Int.max
    /// Says that a request is in flight.
    var isBusy = false
    /// Sends this number of bytes instead of the frame, then closes.
    var closesAfterSending: Int?
    /// Keeps the frames and sends nothing.
    var keepsFrames = false
    /// Never resumes after a pause.
    var staysPaused = false
    /// Says that it handled one byte more than it did.
    var overstatesProgress = false
    /// Pauses reading while something waits to be sent.
    var pausesWhileUnsent = false
}

/// Sends every frame back: four bytes of length, little-endian, and as many more.
///
/// Sendable without the compiler's proof: its own fields are touched on the loop's thread only.
final class EchoHandler: ConnectionHandler, @unchecked Sendable {
    let connection: Connection
    let isBusy: Bool
    private let behaviour: EchoBehaviour
    private let server: EchoServer.Counts
    private var frames = 0

    init(_ connection: Connection, _ behaviour: EchoBehaviour, _ server: EchoServer.Counts) {
        self.connection = connection
        self.behaviour = behaviour
        self.server = server
        isBusy = behaviour.isBusy
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        var start = range.lowerBound
        while range.upperBound - start >= 4 {
            let count = Int(buffer.bytes(start..<start + 4).loadUnaligned(as: UInt32.self).littleEndian)
            let end = start + 4 + count
            if behaviour.pausesWhileUnsent, connection.unsentBytes > 0 {
                connection.pauseReading()
                server.pauses.increment()
                return Transport.Progress(consumed: start - range.lowerBound, nextFrameBytes: 0)
            }
            guard end <= range.upperBound else {
                if range.upperBound - start == 100_000 { server.halves.increment() }
                server.unfinishedBytes.with { $0 = range.upperBound - start }
                return Transport.Progress(consumed: start - range.lowerBound, nextFrameBytes: 4 + count)
            }
            serve(buffer, start..<end)
            start = end
            frames += 1
            if frames % behaviour.pausesAfter == 0 {
                connection.pauseReading()
                server.pauses.increment()
                if !behaviour.staysPaused {
                    DispatchQueue.global().async { [connection] in connection.resumeReading() }
                }
                return Transport.Progress(consumed: start - range.lowerBound, nextFrameBytes: 0)
            }
        }
        let excess = behaviour.overstatesProgress ? 1 : 0
        return Transport.Progress(consumed: start - range.lowerBound + excess, nextFrameBytes: 4)
    }

    private func serve(_ buffer: ReceiveBuffer, _ range: Range<Int>) {
        server.frames.increment()
        if behaviour.keepsFrames {
            let frame = FrameBytes(buffer, range)
            server.kept.with { $0.append(frame) }
        } else if let count = behaviour.closesAfterSending {
            for start in stride(from: 0, to: count, by: 100_000) {
                connection.send(pattern(min(100_000, count - start), from: start))
            }
            connection.close()
        } else {
            connection.send(Array(buffer.bytes(range)))
        }
    }

    func drained() {
        server.drained.increment()
        if behaviour.pausesWhileUnsent { connection.resumeReading() }
    }
    func closed() { server.closed.increment() }
}

/// `count` bytes that tell their position.
func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
    (start..<start + count).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8 ^ $0 >> 16) }
}

func frame(_ body: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(body.count).littleEndian) { Array($0) } + body
}

/// An echo on a free port of the loopback interface, or on a local socket.
final class EchoServer: Sendable {
    struct Counts: Sendable {
        let frames = Shared(0)
        let pauses = Shared(0)
        /// How often exactly 100,000 bytes of an unfinished frame were there.
        let halves = Shared(0)
        /// Bytes of the unfinished frame that was seen last.
        let unfinishedBytes = Shared(0)
        let drained = Shared(0)
        let opened = Shared(0)
        let closed = Shared(0)
        let kept = Shared<[FrameBytes]>([])
        /// What each connection told of its peer.
        let peers = Shared<[(peer: Peer?, credentials: PeerCredentials?)]>([])
    }

    let counts = Counts()
    let time = Shared<UInt64>(1000)
    let loop: EventLoop
    let endpoint: Endpoint

    /// With `idle` or `stall` time stands still until `advance`; else it is the system's.
    init(
        _ kind: PollerKind = .systems, _ behaviour: EchoBehaviour = EchoBehaviour(),
        memory: MemoryBudget = MemoryBudget(bytesMax: 64 << 20), idle: UInt64? = nil, stall: UInt64? = nil,
        at place: Endpoint = Endpoint(host: "127.0.0.1", port: 0)
    ) throws {
        let (time, counts) = (time, counts)
        let isManual = idle != nil || stall != nil
        let clock = isManual ? MonotonicClock { time.value } : .system
        loop = try EventLoop(
            memory: memory,
            timeouts: EventLoop.Timeouts(idle: idle ?? 1_000_000, stall: stall ?? 1_000_000), clock: clock,
            poller: try kind.make())
        let listener = try #require(try Socket.listen(on: place).first)
        endpoint = listener.endpoint
        loop.start(name: "echo")
        loop.listen(on: listener.descriptor) { [loop] descriptor in
            Connection.start(descriptor, on: loop) { connection in
                counts.peers.with { $0.append((connection.peer, connection.peerCredentials)) }
                counts.opened.increment()
                return EchoHandler(connection, behaviour, counts)
            }
        } refuse: { _ in
        }
    }

    deinit {
        loop.stop()
    }

    /// Returns when the loop has done everything that it could do before this call.
    func settle() {
        for _ in 0..<3 {
            let done = DispatchSemaphore(value: 0)
            loop.execute { done.signal() }
            done.wait()
        }
    }

    /// Advances the time and waits until the loop has read it.
    func advance(_ milliseconds: UInt64) {
        settle()
        time.with { $0 += milliseconds }
        settle()
    }
}

extension RawPeer {
    convenience init(_ server: EchoServer) throws(ServiceError) {
        try self.init(server.endpoint)
    }
}
