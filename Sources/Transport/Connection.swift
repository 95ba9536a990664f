import Core
import Foundation
import Platform
import Synchronization

/// What a connection does with received bytes. Called on the loop's thread.
package protocol ConnectionHandler: AnyObject, Sendable {
    /// Handles the whole frames in `range` of `buffer` and returns how far it got. It is called again with the rest of
    /// the bytes when more arrive, or when reading is resumed.
    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress
    /// Whether requests are in flight. A silent connection with requests in flight is not idle.
    var isBusy: Bool { get }
    /// Called when everything that waited to be sent was sent.
    func drained()
    /// Called when the connection is closed. No other method is called after this one.
    func closed()
}

/// How many bytes a handler has consumed.
package struct Progress: Sendable {
    /// Bytes of whole frames that were handled.
    package var consumed: Int
    /// Bytes of the next frame, as far as they are known. The handler has checked them against the maximum.
    package var nextFrameBytes: Int

    package init(consumed: Int, nextFrameBytes: Int) {
        self.consumed = consumed
        self.nextFrameBytes = nextFrameBytes
    }
}

/// One connection on an event loop.
///
/// Sendable without the compiler's proof: only the loop's thread uses the state outside of `outbound`. Each method that
/// only this thread may call asserts it. `send`, `resumeReading` and `close` may be called on any thread.
package final class Connection: @unchecked Sendable {
    /// An unfinished frame of up to this many bytes is copied out of the buffer, so that a silent connection keeps no
    /// buffer.
    private static let partialFrameBytesMax = Limits.unfinishedFrameBytesMax
    /// Reads of one connection before the other connections get their turn.
    private static let readsPerTurn = 4
    /// How long a closed connection waits for the peer to close it too.
    private static let lingerMilliseconds: UInt64 = 2000

    private struct Outbound {
        var chunks = Queue<[UInt8]>()
        /// Bytes of the first chunk that were sent already.
        var sent = 0
        var isClosed = false
        var closesWhenSent = false
        /// Whether the stream has to receive before it can send.
        var waitsForReading = false
    }

    var descriptor: CInt { stream.descriptor }
    private let stream: any ByteStream
    private let loop: EventLoop
    private let handler: any ConnectionHandler
    private let outbound = Mutex(Outbound())
    /// Bytes of `outbound` that wait to be sent. It is changed under `outbound`'s lock but stored outside of it,
    /// because that lock is held while the system sends.
    private let waitingBytes = Atomic<Int>(0)

    private var partialFrame: [UInt8] = []
    private var buffer: ReceiveBuffer?
    private var start = 0
    private var nextFrameBytes = 0
    private var isPaused = false
    /// Whether there are received bytes that the handler has not seen since reading was resumed.
    private var hasLeftovers = false
    /// The time at which a connection that this side closed is given up, if the peer has not closed it by then.
    private var lingerEnd: UInt64?
    private var lacksMemory = false
    /// Whether the stream has to send before it can receive.
    private var waitsForWriting = false
    private var isClosed = false
    private var lastActivity: UInt64
    private var frameBegan: UInt64?
    private var stalledSince: UInt64?

    /// Takes over `stream` and begins to read from it. May be called on any thread. Closes it when the loop has ended;
    /// then `handler` is not called.
    package static func start(
        _ stream: any ByteStream, on loop: EventLoop, handler: @escaping @Sendable (Connection) -> any ConnectionHandler
    ) {
        let isTaken = loop.execute {
            let link = HandlerLink()
            let connection = Connection(stream, loop, link)
            link.handler = handler(connection)
            guard loop.register(connection) else { return connection.closeNow() }
            if stream.holdsBytes { connection.becameReadable() }
        }
        if !isTaken { stream.close() }
    }

    /// Takes over `descriptor`, a non-blocking socket without encryption.
    package static func start(
        _ descriptor: CInt, on loop: EventLoop, handler: @escaping @Sendable (Connection) -> any ConnectionHandler
    ) {
        start(PlainStream(descriptor), on: loop, handler: handler)
    }

    /// Stands in for the handler until the handler is made, because the handler is made with its connection.
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

    private init(_ stream: any ByteStream, _ loop: EventLoop, _ handler: any ConnectionHandler) {
        self.stream = stream
        self.loop = loop
        self.handler = handler
        lastActivity = loop.clock.milliseconds
    }

    // MARK: From any thread

    /// Sends `bytes` behind everything sent before. Bytes that the socket does not take at once are queued.
    package func send(_ bytes: [UInt8]) {
        let needsLoop = outbound.withLock { outbound -> Bool in
            guard !outbound.isClosed, !outbound.closesWhenSent, !bytes.isEmpty else { return false }
            guard outbound.chunks.isEmpty else {
                outbound.chunks.append(bytes)
                countWaiting(bytes.count)
                return false
            }
            var sent = 0
            switch bytes.withUnsafeBytes({ stream.send($0) }) {
            case .bytes(let count): sent = count
            case .wouldBlock(let interest): outbound.waitsForReading = interest == .reading
            // Reading will find that the connection has ended, and will close it.
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

    /// The certificate that the peer has proved to own; `nil` when there is none.
    package var peerCertificate: PeerCertificate? { stream.peerCertificate }

    /// Why the connection has ended, in one line for people; `nil` when nothing more is known than that it has.
    package var failure: String? { stream.failure }

    /// Number of bytes that wait to be sent.
    package var unsentBytes: Int { waitingBytes.load(ordering: .relaxed) }

    /// Adds to the number of bytes that wait to be sent.
    private func countWaiting(_ bytes: Int) {
        waitingBytes.add(bytes, ordering: .relaxed)
        loop.unsentBytes.add(bytes, ordering: .relaxed)
    }

    /// Resumes reading after `pauseReading`. The handler first gets the bytes that were received before the pause.
    package func resumeReading() {
        loop.execute { [self] in
            guard isPaused, !isClosed, lingerEnd == nil else { return }
            isPaused = false
            hasLeftovers = true
            updateInterest()
            becameReadable()
        }
    }

    /// Closes the connection when everything was sent. Bytes that are received from now on are ignored.
    package func close() {
        outbound.withLock { $0.closesWhenSent = true }
        loop.execute { [self] in
            guard !isClosed, lingerEnd == nil else { return }
            isPaused = true
            if outbound.withLock({ $0.chunks.isEmpty }) { linger() } else { updateInterest() }
        }
    }

    /// Ends sending, then reads and discards bytes until the peer closes the connection too. Closing a socket with
    /// unread bytes would reset the connection, and the peer could lose the last answer.
    private func linger() {
        loop.assertOnThread()
        precondition(lingerEnd == nil && !isClosed)
        lingerEnd = loop.clock.milliseconds + Connection.lingerMilliseconds
        stream.endSending()
        isPaused = false
        partialFrame = []
        buffer = nil
        updateInterest()
        becameReadable()
    }

    private func discardOnce() -> Bool {
        let result = withUnsafeTemporaryAllocation(byteCount: Connection.partialFrameBytesMax, alignment: 16) {
            stream.receive(into: $0)
        }
        switch result {
        case .bytes: return true
        case .wouldBlock(let interest):
            wait(for: interest)
            return false
        case .ended:
            closeNow()
            return false
        }
    }

    // MARK: On the loop's thread

    /// Traps unless the calling thread is the loop's.
    package func assertOnThread() { loop.assertOnThread() }

    /// Stops reading until `resumeReading`. Bytes that the handler did not consume are kept.
    package func pauseReading() {
        loop.assertOnThread()
        isPaused = true
        updateInterest()
    }

    func becameReadable() {
        loop.assertOnThread()
        let isAwaited = outbound.withLock { outbound in
            defer { outbound.waitsForReading = false }
            return outbound.waitsForReading
        }
        if isAwaited {
            becameWritable()
            updateInterest()
        }
        for _ in 0..<Connection.readsPerTurn {
            guard !isPaused, !isClosed else { return }
            guard lingerEnd == nil ? readOnce() : discardOnce() else { return }
        }
        // The poller does not know of bytes that the stream holds.
        if stream.holdsBytes { loop.execute { self.becameReadable() } }
    }

    /// Notes that the stream has to send before it can receive, if that is so.
    private func wait(for interest: Interest) {
        guard interest == .writing, !isClosed else { return }
        waitsForWriting = true
        updateInterest()
    }

    /// Closes the connection if it is not being read: the peer has closed both directions. A connection that is read
    /// finds this out itself. One that is not read would get this event again and again.
    func ended() {
        loop.assertOnThread()
        if isPaused || lacksMemory { closeNow() }
    }

    /// Reads once and passes the bytes to the handler. Returns whether there may be more to read.
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
        switch stream.receive(into: room) {
        case .wouldBlock(let interest):
            setAside(buffer)
            wait(for: interest)
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
            return count == room.count || stream.holdsBytes
        }
    }

    /// Stops reading until the next sweep, because there is no memory for receiving.
    private func giveUpForNow() -> Bool {
        lacksMemory = true
        updateInterest()
        return false
    }

    /// Passes the received bytes to the handler. Returns whether reading must stop.
    private func handle(_ buffer: ReceiveBuffer) -> Bool {
        let progress = handler.received(buffer, start..<buffer.filled)
        precondition(
            progress.consumed >= 0 && start + progress.consumed <= buffer.filled,
            "more bytes were handled than received")
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

    /// Returns a buffer that holds this connection's unhandled bytes and has room behind them.
    ///
    /// It grows by doubling, so that the buffer of a frame has at most twice as many bytes as have arrived.
    private func bufferWithRoom() -> ReceiveBuffer? {
        guard let kept = buffer else { return freshBuffer() }
        if kept.filled < kept.storage.count { return kept }
        let unhandled = kept.bytes(start..<kept.filled)
        let wanted = min(max(nextFrameBytes, unhandled.count + 1), 2 * unhandled.count)
        guard let larger = loop.buffers.buffer(capacity: max(wanted, Limits.receiveBufferBytes)) else { return nil }
        precondition(larger.storage.count > unhandled.count, "a larger buffer has no room")
        larger.storage.copyMemory(from: unhandled)
        larger.filled = unhandled.count
        start = 0
        return larger
    }

    /// Takes the loop's buffer and copies the bytes into it that were set aside.
    private func freshBuffer() -> ReceiveBuffer? {
        guard let fresh = loop.takeScratch() else { return nil }
        precondition(partialFrame.count < fresh.storage.count)
        fresh.storage.copyBytes(from: partialFrame)
        fresh.filled = partialFrame.count
        partialFrame = []
        start = 0
        return fresh
    }

    /// Keeps the unhandled bytes: a few are copied aside, many stay in their buffer.
    private func setAside(_ buffer: ReceiveBuffer) {
        let left = buffer.filled - start
        precondition(left >= 0)
        assert(partialFrame.isEmpty, "received bytes are both in the buffer and set aside")
        guard left <= Connection.partialFrameBytesMax else { return }
        partialFrame = left == 0 ? [] : Array(buffer.bytes(start..<buffer.filled))
        start = 0
        self.buffer = nil
        loop.returnScratch(buffer)
    }

    func becameWritable() {
        loop.assertOnThread()
        if waitsForWriting {
            waitsForWriting = false
            updateInterest()
            becameReadable()
        }
        guard !isClosed else { return }
        let (isEmpty, isBroken, closes, waitsForReading) = outbound.withLock { outbound -> (Bool, Bool, Bool, Bool) in
            while let chunk = outbound.chunks.first {
                let result = chunk.withUnsafeBytes {
                    stream.send(UnsafeRawBufferPointer(rebasing: $0[outbound.sent...]))
                }
                guard case .bytes(let count) = result else {
                    outbound.waitsForReading = result == .wouldBlock(.reading)
                    return (false, result == .ended, false, outbound.waitsForReading)
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
            return (true, false, outbound.closesWhenSent, false)
        }
        if isBroken {
            closeNow()
        } else if isEmpty, closes {
            if lingerEnd == nil { linger() }
        } else if isEmpty {
            updateInterest()
            handler.drained()
        } else if waitsForReading {
            updateInterest()
        }
    }

    private func updateInterest() {
        loop.assertOnThread()
        guard !isClosed else { return }
        var interest: Interest = []
        if !isPaused, !lacksMemory { interest.insert(.reading) }
        let (isWaiting, waitsForReading) = outbound.withLock { (!$0.chunks.isEmpty, $0.waitsForReading) }
        if isWaiting {
            interest.insert(waitsForReading ? .reading : .writing)
            if stalledSince == nil { stalledSince = loop.clock.milliseconds }
        }
        if waitsForWriting { interest.insert(.writing) }
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
        // The lock keeps other threads from sending to the descriptor after the system has given it to another file.
        outbound.withLock { outbound in
            outbound.isClosed = true
            countWaiting(-unsentBytes)
            outbound.chunks = Queue()
            stream.close()
        }
        partialFrame = []
        buffer = nil
        handler.closed()
    }
}
