import Core
import Foundation
import Platform
import Synchronization

/// What a connection does with received bytes. Called on the loop's thread.
package protocol ConnectionHandler: AnyObject, Sendable {
    /// Handles the whole frames in `range` of `buffer` and says how far it got; called again with what is
    /// left when more arrives, or when reading is resumed.
    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress
    /// Whether requests are in flight, so that a silent connection is not idle.
    var isBusy: Bool { get }
    /// Everything that waited to be sent was sent.
    func drained()
    /// The connection is closed; nothing is called after this.
    func closed()
}

/// How far a handler got.
package struct Progress: Sendable {
    /// Bytes of whole frames that were handled.
    package var consumed: Int
    /// Bytes that the frame behind those will have, as far as that is known; its maximum was checked.
    package var nextFrameBytes: Int

    package init(consumed: Int, nextFrameBytes: Int) {
        self.consumed = consumed
        self.nextFrameBytes = nextFrameBytes
    }
}

/// One TCP connection on an event loop.
///
/// Sendable without the compiler's proof: what is not behind `outbound` is touched by the loop's thread only. Each method
/// that only this thread may call asserts it. `send`, `resumeReading` and `close` may be called on any thread.
package final class Connection: @unchecked Sendable {
    /// Frames cut off by the end of what was received, up to this many bytes, are set aside, so that a
    /// silent connection keeps no buffer.
    private static let partialFrameBytesMax = Limits.unfinishedFrameBytesMax
    /// Reads of one connection before the others get their turn.
    private static let readsPerTurn = 4
    /// How long a closed connection waits for the peer's end.
    private static let lingerMilliseconds: UInt64 = 2000

    private struct Outbound {
        var chunks = Queue<[UInt8]>()
        /// Bytes of the first chunk that are sent.
        var sent = 0
        var isClosed = false
        var closesWhenSent = false
    }

    let descriptor: CInt
    private let loop: EventLoop
    private let handler: any ConnectionHandler
    private let outbound = Mutex(Outbound())
    /// Bytes of `outbound`, changed with it; beside it, because its lock is held while the system sends.
    private let waitingBytes = Atomic<Int>(0)

    private var partialFrame: [UInt8] = []
    private var buffer: ReceiveBuffer?
    private var start = 0
    private var nextFrameBytes = 0
    private var isPaused = false
    /// Whether there are bytes that the handler did not see since reading was resumed.
    private var hasLeftovers = false
    /// When a connection that was closed from this side is given up, should the peer not close it too.
    private var lingerEnd: UInt64?
    private var lacksMemory = false
    private var isClosed = false
    private var lastActivity: UInt64
    private var frameBegan: UInt64?
    private var stalledSince: UInt64?

    /// Takes over `descriptor`, which does not block, and begins to read it; to be called on any thread.
    package static func start(
        _ descriptor: CInt, on loop: EventLoop, handler: @escaping @Sendable (Connection) -> any ConnectionHandler
    ) {
        loop.execute {
            let link = HandlerLink()
            let connection = Connection(descriptor, loop, link)
            link.handler = handler(connection)
            if !loop.register(connection) { connection.closeNow() }
        }
    }

    /// Lets the handler be made with the connection that it belongs to.
    ///
    /// Sendable without the compiler's proof: set before the connection is registered, on the loop's thread.
    private final class HandlerLink: ConnectionHandler, @unchecked Sendable {
        var handler: (any ConnectionHandler)?

        func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
            handler?.received(buffer, range) ?? Progress(consumed: range.count, nextFrameBytes: 0)
        }
        var isBusy: Bool { handler?.isBusy ?? false }
        func drained() { handler?.drained() }
        func closed() {
            handler?.closed()
            handler = nil
        }
    }

    private init(_ descriptor: CInt, _ loop: EventLoop, _ handler: any ConnectionHandler) {
        self.descriptor = descriptor
        self.loop = loop
        self.handler = handler
        lastActivity = loop.clock.milliseconds
    }

    // MARK: From any thread

    /// Sends `bytes` after all that was sent before; what the socket does not take at once waits here.
    package func send(_ bytes: [UInt8]) {
        let needsLoop = outbound.withLock { outbound -> Bool in
            guard !outbound.isClosed, !outbound.closesWhenSent, !bytes.isEmpty else { return false }
            guard outbound.chunks.isEmpty else {
                outbound.chunks.append(bytes)
                countWaiting(bytes.count)
                return false
            }
            var sent = 0
            switch bytes.withUnsafeBytes({ Socket.send(descriptor, $0) }) {
            case .bytes(let count): sent = count
            case .wouldBlock: break
            // The read side notices and closes.
            case .ended: return false
            }
            guard sent < bytes.count else { return false }
            outbound.chunks.append(bytes)
            outbound.sent = sent
            countWaiting(bytes.count - sent)
            return true
        }
        if needsLoop { loop.execute { self.updateInterest() } }
    }

    /// Bytes that wait to be sent.
    package var unsentBytes: Int { waitingBytes.load(ordering: .relaxed) }

    /// That many more bytes wait to be sent.
    private func countWaiting(_ bytes: Int) {
        waitingBytes.add(bytes, ordering: .relaxed)
        loop.unsentBytes.add(bytes, ordering: .relaxed)
    }

    /// Goes on reading after `pauseReading`, beginning with what was received before it.
    package func resumeReading() {
        loop.execute { [self] in
            guard isPaused, !isClosed, lingerEnd == nil else { return }
            isPaused = false
            hasLeftovers = true
            updateInterest()
            becameReadable()
        }
    }

    /// Closes the connection when everything was sent; what is received from now on is ignored.
    package func close() {
        outbound.withLock { $0.closesWhenSent = true }
        loop.execute { [self] in
            guard !isClosed, lingerEnd == nil else { return }
            isPaused = true
            if outbound.withLock({ $0.chunks.isEmpty }) { linger() } else { updateInterest() }
        }
    }

    /// Says that nothing more will be sent, and reads on, into nowhere, until the peer closes too: closing
    /// with bytes unread would reset the connection and could take the last answer with it.
    private func linger() {
        loop.assertOnThread()
        precondition(lingerEnd == nil && !isClosed)
        lingerEnd = loop.clock.milliseconds + Connection.lingerMilliseconds
        shutdown(descriptor, CInt(SHUT_WR))
        isPaused = false
        partialFrame = []
        buffer = nil
        updateInterest()
        becameReadable()
    }

    private func discardOnce() -> Bool {
        let result = withUnsafeTemporaryAllocation(byteCount: Connection.partialFrameBytesMax, alignment: 16) {
            Socket.receive(descriptor, into: $0)
        }
        switch result {
        case .bytes: return true
        case .wouldBlock: return false
        case .ended:
            closeNow()
            return false
        }
    }

    // MARK: On the loop's thread

    /// Traps unless the calling thread is the loop's.
    package func assertOnThread() { loop.assertOnThread() }

    /// Stops reading until `resumeReading`. What the handler did not consume stays.
    package func pauseReading() {
        loop.assertOnThread()
        isPaused = true
        updateInterest()
    }

    func becameReadable() {
        loop.assertOnThread()
        for _ in 0..<Connection.readsPerTurn {
            guard !isPaused, !isClosed else { return }
            guard lingerEnd == nil ? readOnce() : discardOnce() else { return }
        }
    }

    /// The peer is gone in both directions. A connection that reads finds out by itself; one that does not
    /// would be told again and again, and nobody is left to answer.
    func ended() {
        loop.assertOnThread()
        if isPaused || lacksMemory { closeNow() }
    }

    /// Reads what is there and has it handled. Whether there may be more.
    private func readOnce() -> Bool {
        if hasLeftovers {
            guard let buffer = buffer ?? freshBuffer() else { return giveUpForNow() }
            self.buffer = buffer
            hasLeftovers = false
            if start < buffer.filled, handle(buffer) { return false }
        }
        guard let buffer = bufferWithRoom() else { return giveUpForNow() }
        self.buffer = buffer
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer.storage[buffer.filled...])
        switch Socket.receive(descriptor, into: room) {
        case .wouldBlock:
            setAside(buffer)
            return false
        case .ended:
            setAside(buffer)
            closeNow()
            return false
        case .bytes(let count):
            lastActivity = loop.clock.milliseconds
            buffer.filled += count
            if handle(buffer) { return false }
            setAside(buffer)
            return count == room.count
        }
    }

    /// There is no memory for receiving: the sweep tries again.
    private func giveUpForNow() -> Bool {
        lacksMemory = true
        updateInterest()
        return false
    }

    /// Has the received bytes handled. Whether reading has to stop.
    private func handle(_ buffer: ReceiveBuffer) -> Bool {
        let progress = handler.received(buffer, start..<buffer.filled)
        precondition(progress.consumed >= 0 && start + progress.consumed <= buffer.filled, "more handled than received")
        start += progress.consumed
        nextFrameBytes = progress.nextFrameBytes
        if start == buffer.filled {
            frameBegan = nil
        } else if progress.consumed > 0 || frameBegan == nil {
            frameBegan = lastActivity
        }
        if isPaused || isClosed {
            setAside(buffer)
            return true
        }
        return false
    }

    /// A buffer with this connection's unhandled bytes in it and room behind them.
    ///
    /// Grows by doubling, so that a frame takes no more than twice the bytes that arrived of it.
    private func bufferWithRoom() -> ReceiveBuffer? {
        guard let kept = buffer else { return freshBuffer() }
        if kept.filled < kept.storage.count { return kept }
        let unhandled = kept.bytes(start..<kept.filled)
        let wanted = min(max(nextFrameBytes, unhandled.count + 1), 2 * unhandled.count)
        guard let larger = loop.buffers.buffer(capacity: max(wanted, Limits.receiveBufferBytes)) else { return nil }
        precondition(larger.storage.count > unhandled.count, "a larger buffer has room")
        larger.storage.copyMemory(from: unhandled)
        larger.filled = unhandled.count
        start = 0
        return larger
    }

    /// The loop's buffer, with the bytes in it that were set aside.
    private func freshBuffer() -> ReceiveBuffer? {
        guard let fresh = loop.takeScratch() else { return nil }
        precondition(partialFrame.count < fresh.storage.count)
        fresh.storage.copyBytes(from: partialFrame)
        fresh.filled = partialFrame.count
        partialFrame = []
        start = 0
        return fresh
    }

    /// Keeps what was not handled: few bytes aside, many in their buffer.
    private func setAside(_ buffer: ReceiveBuffer) {
        let left = buffer.filled - start
        precondition(left >= 0)
        assert(partialFrame.isEmpty, "received bytes are in the buffer or set aside, not both")
        guard left <= Connection.partialFrameBytesMax else { return }
        partialFrame = left == 0 ? [] : Array(buffer.bytes(start..<buffer.filled))
        start = 0
        self.buffer = nil
        loop.returnScratch(buffer)
    }

    func becameWritable() {
        loop.assertOnThread()
        let (isEmpty, isBroken, closes) = outbound.withLock { outbound -> (Bool, Bool, Bool) in
            while let chunk = outbound.chunks.first {
                let result = chunk.withUnsafeBytes {
                    Socket.send(descriptor, UnsafeRawBufferPointer(rebasing: $0[outbound.sent...]))
                }
                guard case .bytes(let count) = result else {
                    if case .ended = result { return (false, true, false) }
                    return (false, false, false)
                }
                lastActivity = loop.clock.milliseconds
                stalledSince = nil
                countWaiting(-count)
                outbound.sent += count
                precondition(outbound.sent <= chunk.count && unsentBytes >= 0)
                if outbound.sent == chunk.count {
                    outbound.chunks.removeFirst()
                    outbound.sent = 0
                }
            }
            return (true, false, outbound.closesWhenSent)
        }
        if isBroken {
            closeNow()
        } else if isEmpty, closes {
            if lingerEnd == nil { linger() }
        } else if isEmpty {
            updateInterest()
            handler.drained()
        }
    }

    private func updateInterest() {
        loop.assertOnThread()
        guard !isClosed else { return }
        var interest: Interest = []
        if !isPaused, !lacksMemory { interest.insert(.reading) }
        if outbound.withLock({ !$0.chunks.isEmpty }) {
            interest.insert(.writing)
            if stalledSince == nil { stalledSince = loop.clock.milliseconds }
        }
        loop.watch(self, for: interest)
    }

    func sweep(now: UInt64) {
        loop.assertOnThread()
        if lacksMemory {
            lacksMemory = false
            updateInterest()
            becameReadable()
        }
        guard !isClosed else { return }
        if let lingerEnd, now > lingerEnd { return closeNow() }
        let isSlow = [isPaused ? nil : frameBegan, stalledSince].contains {
            $0.map { now > $0 + loop.timeouts.stall } ?? false
        }
        let isIdle = now > lastActivity + loop.timeouts.idle && !handler.isBusy
        if isSlow || isIdle { closeNow() }
    }

    func closeNow() {
        loop.assertOnThread()
        guard !isClosed else { return }
        isClosed = true
        loop.forget(self)
        // Under the lock, so that no other thread sends to a descriptor that is somebody else's by then.
        outbound.withLock { outbound in
            outbound.isClosed = true
            countWaiting(-unsentBytes)
            outbound.chunks = Queue()
            Foundation.close(descriptor)
        }
        partialFrame = []
        buffer = nil
        handler.closed()
    }
}
