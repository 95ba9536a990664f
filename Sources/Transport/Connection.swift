package import Core
import Foundation
import Platform
import Synchronization

/// What a connection does with received bytes. Called on the loop's thread.
package protocol ConnectionHandler: AnyObject, Sendable {
    /// Handles the whole frames in `range` of `buffer` and returns how far it got. It is called again with the rest of
    /// the bytes when more arrive, or when reading is resumed.
    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress
    /// There is no memory for keeping the bytes in `range` of `buffer`: answers that to each frame that begins there.
    /// Returns `nil` when it can't; then the connection is closed. The default can't.
    func refused(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Refusal?
    /// Whether the unfinished frame that `bytes` begin is of an urgent request, which may use the reserve of the
    /// memory. The default says no.
    func isUrgent(_ bytes: UnsafeRawBufferPointer) -> Bool
    /// What the peer gets when it has not finished a frame in time, before the connection is closed. The default is
    /// nothing.
    func lastWord() -> [UInt8]?
    /// Whether requests are in flight. A silent connection with requests in flight is not idle.
    var isBusy: Bool { get }
    /// Called when everything that waited to be sent was sent.
    func drained()
    /// Called when the connection is closed. No other method is called after this one.
    func closed()
}

extension ConnectionHandler {
    package func refused(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Refusal? { nil }
    package func isUrgent(_ bytes: UnsafeRawBufferPointer) -> Bool { false }
    package func lastWord() -> [UInt8]? { nil }
}

/// What is left of bytes that a handler has refused.
package struct Refusal: Sendable {
    /// Bytes of frames that were refused, as far as they have arrived. Fewer than a header follow them.
    package var consumed: Int
    /// Bytes of the last refused frame that have not arrived yet. They are not passed to the handler.
    package var missing: Int

    package init(consumed: Int, missing: Int) {
        self.consumed = consumed
        self.missing = missing
    }
}

/// How many bytes a handler has consumed.
package struct Progress: Sendable {
    /// Bytes of whole frames that were handled.
    package var consumed: Int
    /// Bytes of the next frame, as far as they are known. The handler has checked them against the maximum.
    package var nextFrameBytes: Int
    /// The kind of the requests in the frames: prompt, unless all of them follow. `nil` when none were handled.
    package var kind: WorkKind?

    package init(consumed: Int, nextFrameBytes: Int, kind: WorkKind? = nil) {
        self.consumed = consumed
        self.nextFrameBytes = nextFrameBytes
        self.kind = kind
    }
}

/// One connection on an event loop.
///
/// Sendable without the compiler's proof: only the loop's thread uses the state outside of `outbound`. Each method that
/// only this thread may call asserts it. `send`, `beginGathering`, `endGathering`, `resumeReading`, `close` and
/// `closeAtOnce` may be called on any thread.
package final class Connection: @unchecked Sendable {
    /// Reads of one connection before the other connections get their turn.
    private static let readsPerTurn = 16
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
        /// What is reserved for the chunks, as far as they were sent with a charge.
        var charge = MemoryCharge()
        /// Bytes of the chunks, those of the first that were sent included.
        var chunkBytes = 0
        /// Calls of `beginGathering` whose `endGathering` has not come yet.
        var gatherers = 0
        /// Whether something was sent since then.
        var hasGathered = false
        /// What of it waits, and what is reserved for that. Empty while nobody gathers.
        var gathered: [UInt8] = []
        var gatheredCharge = MemoryCharge()

        /// Whether nothing waits to be sent.
        var isEmpty: Bool { chunks.isEmpty && gathered.isEmpty }

        /// Keeps `bytes` for `takeGathered`.
        mutating func gather(_ bytes: [UInt8], _ charge: inout MemoryCharge) {
            hasGathered = true
            if gathered.isEmpty { gathered = bytes } else { gathered += bytes }
            gatheredCharge += charge
            charge = MemoryCharge()
        }

        /// Takes what was gathered.
        mutating func takeGathered() -> (bytes: [UInt8], charge: MemoryCharge) {
            defer { (gathered, gatheredCharge) = ([], MemoryCharge()) }
            return (gathered, gatheredCharge)
        }

        /// Queues `bytes` from `start` on with as much of `charge` as they need. What is left of it is given back by
        /// the caller.
        mutating func append(_ bytes: [UInt8], from start: Int, _ charge: inout MemoryCharge) {
            // The copy has no room behind its bytes.
            let isTight = start == 0 && bytes.capacity <= bytes.count + bytes.count / 8
            let chunk = isTight ? bytes : Array(bytes[start...])
            chunks.append(chunk)
            chunkBytes += chunk.count
            self.charge += charge.split(chunk.count + Limits.unsentOverheadBytes)
        }

        /// Removes the first chunk, which was sent.
        mutating func removeFirst() {
            chunkBytes -= chunks.first?.count ?? 0
            chunks.removeFirst()
            sent = 0
        }

        /// What the chunks no longer need of the charge.
        mutating func surplus() -> MemoryCharge {
            charge.split(max(0, charge.bytes - chunkBytes - chunks.count * Limits.unsentOverheadBytes))
        }
    }

    var descriptor: CInt { stream.descriptor }
    let stream: any ByteStream
    private let loop: EventLoop
    private let handler: any ConnectionHandler
    /// Who takes turns with others on the loop.
    let owner: Holder
    /// What the connection is ready for while it waits for its turn on the loop; empty: it does not wait. Only the loop
    /// uses it.
    var readiness: Interest = []
    /// What the connection holds of the loop's memory.
    package let memory: MemoryAccount
    private let outbound = Lock(Outbound())
    /// Bytes of `outbound` that wait to be sent. It is changed under `outbound`'s lock but stored outside of it,
    /// because that lock is held while the system sends.
    private let waitingBytes = Atomic<Int>(0)

    /// Unhandled bytes that need no buffer, and what is reserved for them.
    private var partialFrame: [UInt8] = []
    private var partialCharge = MemoryCharge()
    /// A buffer of the connection's own, for a long frame; `nil` otherwise. Then `partialFrame` is empty.
    private var buffer: ReceiveBuffer?
    /// Where the unhandled bytes begin in the buffer that is being handled.
    private var start = 0
    private var nextFrameBytes = 0
    /// Bytes of a refused frame that have not arrived yet.
    private var missing = 0
    /// Bytes that may be received before the other connections get their turn.
    private var turnBytes = 0
    private var isPaused = false
    /// Whether there are received bytes that the handler has not seen since reading was resumed.
    private var hasLeftovers = false
    /// The time at which a connection that this side closed is given up, if the peer has not closed it by then.
    private var lingerEnd: UInt64?
    private var lacksMemory = false
    /// Whether the stream has to send before it can receive.
    private var waitsForWriting = false
    private var isClosed = false
    /// When bytes were received or sent last. It is an atomic value because other threads read it.
    private let activity: Atomic<UInt64>
    private var frameBegan: UInt64?
    private var stalledSince: UInt64?
    /// Bytes that the peer has taken since then.
    private var takenSinceStall = 0

    /// Takes over `stream` and begins to read from it. `peer` is who shares the loop's memory with others. May be
    /// called on any thread. Closes it and returns false when the loop has ended; then `handler` is not called.
    @discardableResult
    package static func start(
        _ stream: any ByteStream, on loop: EventLoop, of peer: Holder = .service,
        handler: @escaping @Sendable (Connection) -> any ConnectionHandler
    ) -> Bool {
        let isTaken = loop.execute {
            let link = HandlerLink()
            let connection = Connection(stream, loop, link, peer)
            link.handler = handler(connection)
            guard loop.register(connection) else { return connection.closeNow() }
            if stream.holdsBytes { connection.becameReadable() }
        }
        if !isTaken { stream.close() }
        return isTaken
    }

    /// Takes over `descriptor`, a non-blocking socket without encryption.
    package static func start(
        _ descriptor: CInt, on loop: EventLoop, of peer: Holder = .service,
        handler: @escaping @Sendable (Connection) -> any ConnectionHandler
    ) {
        start(PlainStream(descriptor), on: loop, of: peer, handler: handler)
    }

    /// Stands in for the handler until the handler is made, because the handler is made with its connection.
    ///
    /// Sendable without the compiler's proof: set before the connection is registered, on the loop's thread.
    private final class HandlerLink: ConnectionHandler, @unchecked Sendable {
        var handler: (any ConnectionHandler)?

        func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
            handler?.received(buffer, range) ?? Progress(consumed: range.count, nextFrameBytes: 0)
        }
        func refused(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Refusal? { handler?.refused(buffer, range) }
        func isUrgent(_ bytes: UnsafeRawBufferPointer) -> Bool { handler?.isUrgent(bytes) ?? false }
        func lastWord() -> [UInt8]? { handler?.lastWord() }
        var isBusy: Bool { handler?.isBusy ?? false }
        func drained() { handler?.drained() }
        func closed() {
            handler?.closed()
            handler = nil
        }
    }

    private init(
        _ stream: any ByteStream, _ loop: EventLoop, _ handler: any ConnectionHandler, _ peer: Holder
    ) {
        self.stream = stream
        owner = peer
        memory = loop.memory.account(for: peer)
        self.loop = loop
        self.handler = handler
        activity = Atomic(loop.clock.milliseconds)
    }

    /// The kind of the requests in the last bytes in which one was whole. A long frame is no such query, whatever came
    /// before it.
    package var kind: WorkKind {
        buffer == nil && nextFrameBytes <= Limits.followingTurnBytes ? handledKind : .prompt
    }
    private var handledKind = WorkKind.prompt

    // MARK: From any thread

    /// Sends `bytes` behind everything sent before. Bytes that the socket does not take at once are queued. `charge` is
    /// what is reserved for them in `memory`. It is given back as soon as the system has taken them.
    package func send(_ bytes: [UInt8], _ charge: MemoryCharge = MemoryCharge()) {
        var charge = charge
        let needsLoop = outbound.withLock { outbound -> Bool in
            guard !outbound.isClosed, !outbound.closesWhenSent, !bytes.isEmpty else { return false }
            guard outbound.gatherers == 0 else {
                outbound.gather(bytes, &charge)
                countWaiting(bytes.count)
                return outbound.gathered.count > Limits.gatheredBytesMax && transmitGathered(&charge, &outbound)
            }
            return transmit(bytes, &charge, &outbound)
        }
        memory.giveBack(charge)
        if needsLoop { loop.execute { self.updateInterest() } }
    }

    /// Sends `bytes`, or queues those that the socket does not take. Returns whether the loop has to wait for the
    /// socket. Called under the lock.
    private func transmit(_ bytes: [UInt8], _ charge: inout MemoryCharge, _ outbound: inout Outbound) -> Bool {
        guard outbound.chunks.isEmpty else {
            outbound.append(bytes, from: 0, &charge)
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
        outbound.append(bytes, from: sent, &charge)
        countWaiting(bytes.count - sent)
        return true
    }

    /// Transmits what was gathered. `charge`: set to what is no longer needed of what was reserved. Returns whether the
    /// loop has to wait for the socket. Called under the lock.
    private func transmitGathered(_ charge: inout MemoryCharge, _ outbound: inout Outbound) -> Bool {
        let bytes: [UInt8]
        (bytes, charge) = outbound.takeGathered()
        // The bytes never seem to be sent before they are: a shutdown waits until none wait.
        defer { countWaiting(-bytes.count) }
        return transmit(bytes, &charge, &outbound)
    }

    /// Keeps what is sent from now on, by any thread, until `endGathering`. Then one system call sends all of it. What
    /// is more than `Limits.gatheredBytesMax` leaves earlier. The caller soon calls `endGathering`: nothing that it
    /// does in between waits for another thread or a disk.
    package func beginGathering() {
        outbound.withLock { $0.gatherers += 1 }
    }

    /// Sends what was gathered, unless somebody else still gathers. Returns whether that was all that waited to be
    /// sent; then `drained` is not called.
    package func endGathering() -> Bool {
        var charge = MemoryCharge()
        let (needsLoop, isSent, closes) = outbound.withLock { outbound -> (Bool, Bool, Bool) in
            precondition(outbound.gatherers > 0, "what was not begun is ended")
            outbound.gatherers -= 1
            guard outbound.gatherers == 0, outbound.hasGathered, !outbound.isClosed else {
                return (false, false, false)
            }
            outbound.hasGathered = false
            let needsLoop = !outbound.gathered.isEmpty && transmitGathered(&charge, &outbound)
            let isSent = outbound.isEmpty
            return (needsLoop, isSent, isSent && outbound.closesWhenSent)
        }
        memory.giveBack(charge)
        if needsLoop { loop.execute { self.updateInterest() } }
        // `close` has left it to whoever sends the last bytes.
        if closes { loop.execute { self.lingerIfClosing() } }
        return isSent
    }

    /// The certificate that the peer has proved to own; `nil` when there is none.
    package var peerCertificate: PeerCertificate? { stream.peerCertificate }

    /// Why the connection has ended, in one line for people; `nil` when nothing more is known than that it has.
    package var failure: String? { stream.failure }

    /// When bytes were received or sent last, in milliseconds of the loop's clock.
    package private(set) var lastActivity: UInt64 {
        get { activity.load(ordering: .relaxed) }
        set { activity.store(newValue, ordering: .relaxed) }
    }

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
            loop.serveLater(self, .reading)
        }
    }

    /// Closes the connection when everything was sent. Bytes that are received from now on are ignored.
    package func close() {
        outbound.withLock { $0.closesWhenSent = true }
        loop.execute { [self] in
            guard !isClosed, lingerEnd == nil else { return }
            isPaused = true
            if outbound.withLock({ $0.isEmpty }) { linger() } else { updateInterest() }
        }
    }

    /// Closes the connection without sending what waits.
    package func closeAtOnce() {
        loop.execute { [self] in closeNow() }
    }

    private func lingerIfClosing() {
        guard !isClosed, lingerEnd == nil, outbound.withLock({ $0.closesWhenSent && $0.isEmpty }) else { return }
        linger()
    }

    /// Ends sending, then reads and discards bytes until the peer closes the connection too. Closing a socket with
    /// unread bytes would reset the connection, and the peer could lose the last answer.
    private func linger() {
        loop.assertOnThread()
        precondition(lingerEnd == nil && !isClosed)
        lingerEnd = loop.clock.milliseconds + Connection.lingerMilliseconds
        stream.endSending()
        isPaused = false
        forgetReceived()
        updateInterest()
        becameReadable()
    }

    private func discardOnce() -> Bool {
        switch stream.receive(into: loop.lendScratch().storage) {
        case .bytes(let count):
            turnBytes -= count
            return true
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
        // Requests that are as dear as queries that follow are taken in small portions.
        turnBytes = kind == .following ? Limits.followingTurnBytes : loop.turnBytes
        for _ in 0..<Connection.readsPerTurn where turnBytes > 0 {
            guard !isPaused, !isClosed else { return }
            guard lingerEnd == nil ? readOnce() : discardOnce() else { return }
        }
        // The poller does not know of bytes that the stream holds.
        if stream.holdsBytes { loop.serveLater(self, .reading) }
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
            hasLeftovers = false
            let buffer = bufferWithUnhandled()
            if start < buffer.filled { handle(buffer) }
            keepUnhandled(of: buffer)
            guard !isPaused, !isClosed else { return false }
        }
        // A client's connection that waits for memory leaves its answers in the socket.
        if loop.memory.isWaitedFor, !loop.memory.hasRoom, buffer == nil {
            lacksMemory = true
            updateInterest()
            return false
        }
        let buffer = bufferWithUnhandled()
        let least = kind == .following ? Limits.followingTurnBytes : Limits.turnBytesPerConnectionMin
        let end = min(buffer.storage.count, buffer.filled + max(turnBytes, least))
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer.storage[buffer.filled..<end])
        precondition(room.count > 0, "a buffer has no room")
        switch stream.receive(into: room) {
        case .wouldBlock(let interest):
            wait(for: interest)
            return false
        case .ended:
            closeNow()
            return false
        case .bytes(let count):
            lastActivity = loop.clock.milliseconds
            turnBytes -= count
            buffer.filled += count
            let skipped = min(missing, count)
            missing -= skipped
            start += skipped
            handle(buffer)
            keepUnhandled(of: buffer)
            return count == room.count || stream.holdsBytes
        }
    }

    /// Passes the received bytes to the handler.
    private func handle(_ buffer: ReceiveBuffer) {
        // What the handler answers at once leaves together.
        beginGathering()
        let progress =
            start < buffer.filled
            ? handler.received(buffer, start..<buffer.filled) : Progress(consumed: 0, nextFrameBytes: 0)
        if endGathering(), isPaused, !isClosed { handler.drained() }
        precondition(
            progress.consumed >= 0 && start + progress.consumed <= buffer.filled,
            "more bytes were handled than received")
        start += progress.consumed
        nextFrameBytes = progress.nextFrameBytes
        if let kind = progress.kind { handledKind = kind }
        if start == buffer.filled {
            if missing == 0 { frameBegan = nil }
        } else if progress.consumed > 0 || frameBegan == nil {
            frameBegan = lastActivity
        }
    }

    // MARK: Bytes that are not handled yet

    /// The buffer with the unhandled bytes and room behind them, or with only those when reading was paused: the
    /// connection's own, or the loop's.
    private func bufferWithUnhandled() -> ReceiveBuffer {
        if let buffer { return buffer }
        let scratch = loop.lendScratch()
        precondition(partialFrame.count < scratch.storage.count)
        scratch.storage.copyBytes(from: partialFrame)
        scratch.filled = partialFrame.count
        start = 0
        return scratch
    }

    /// Keeps the unhandled bytes of the buffer until more arrive. Memory for them is reserved first; without it the
    /// handler refuses them.
    private func keepUnhandled(of used: ReceiveBuffer) {
        guard !isClosed else { return }
        let left = used.filled - start
        precondition(left >= 0)
        guard left > 0 else { return forgetReceived() }
        // There is room for more, or no more is read.
        if used === buffer, used.filled < used.storage.count || isPaused { return }
        if left <= Limits.unfinishedFrameBytesMax {
            let bytes = used.bytes(start..<used.filled)
            let isCounted = left > Limits.uncountedFrameBytesMax
            guard let charge = isCounted ? reserve(left, for: bytes) : MemoryCharge() else { return refuse(used) }
            let kept = Array(bytes)
            forgetReceived()
            (partialFrame, partialCharge) = (kept, charge)
        } else {
            let capacity = isPaused ? left : min(max(nextFrameBytes, left + 1), 2 * left)
            guard let charge = reserve(capacity, for: used.bytes(start..<used.filled)) else { return refuse(used) }
            let own = ReceiveBuffer(capacity: capacity, memory, charge)
            own.storage.copyMemory(from: used.bytes(start..<used.filled))
            own.filled = left
            forgetReceived()
            buffer = own
        }
    }

    /// Reserves memory for keeping `unhandled`; `nil` when there is none.
    private func reserve(_ bytes: Int, for unhandled: UnsafeRawBufferPointer) -> MemoryCharge? {
        if let charge = memory.reserve(bytes, isUrgent: false) { return charge }
        // A client reads nothing more until there is memory again.
        if loop.memory.isWaitedFor { return memory.take(bytes) }
        return handler.isUrgent(unhandled) ? memory.reserve(bytes, isUrgent: true) : nil
    }

    /// Lets the handler refuse the unhandled bytes, for which there is no memory.
    private func refuse(_ used: ReceiveBuffer) {
        guard let refusal = handler.refused(used, start..<used.filled) else { return closeNow() }
        start += refusal.consumed
        missing = refusal.missing
        nextFrameBytes = 0
        let left = used.filled - start
        precondition(left >= 0 && left < Limits.uncountedFrameBytesMax, "refused bytes are left")
        precondition(missing >= 0 && (missing == 0 || left == 0), "bytes are missing before others that have arrived")
        let kept = Array(used.bytes(start..<used.filled))
        forgetReceived()
        partialFrame = kept
        frameBegan = missing > 0 || left > 0 ? lastActivity : nil
    }

    /// Lets go of all received bytes.
    private func forgetReceived() {
        buffer = nil
        partialFrame = []
        start = 0
        memory.giveBack(partialCharge)
        partialCharge = MemoryCharge()
    }

    func becameWritable() {
        loop.assertOnThread()
        if waitsForWriting {
            waitsForWriting = false
            updateInterest()
            becameReadable()
        }
        guard !isClosed else { return }
        var surplus = MemoryCharge()
        let (isEmpty, isBroken, closes, waitsForReading) = outbound.withLock { outbound -> (Bool, Bool, Bool, Bool) in
            defer { surplus = outbound.surplus() }
            while let chunk = outbound.chunks.first {
                let result = chunk.withUnsafeBytes {
                    stream.send(UnsafeRawBufferPointer(rebasing: $0[outbound.sent...]))
                }
                guard case .bytes(let count) = result else {
                    outbound.waitsForReading = result == .wouldBlock(.reading)
                    return (false, result == .ended, false, outbound.waitsForReading)
                }
                lastActivity = loop.clock.milliseconds
                takenSinceStall += count
                if takenSinceStall >= loop.progressBytesMin { (stalledSince, takenSinceStall) = (lastActivity, 0) }
                countWaiting(-count)
                outbound.sent += count
                precondition(outbound.sent <= chunk.count && unsentBytes >= 0)
                if outbound.sent == chunk.count { outbound.removeFirst() }
            }
            (stalledSince, takenSinceStall) = (nil, 0)
            return (true, false, outbound.closesWhenSent && outbound.isEmpty, false)
        }
        memory.giveBack(surplus)
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
        let isLate = frameBegan.map { !isPaused && now > $0 + loop.timeouts.stall } ?? false
        if isLate, lingerEnd == nil, let word = handler.lastWord() {
            frameBegan = nil
            send(word)
            return close()
        }
        let isStalled = stalledSince.map { now > $0 + loop.stall } ?? false
        let isIdle = now > lastActivity + loop.timeouts.idle && !handler.isBusy
        if isLate || isStalled || isIdle { closeNow() }
    }

    func closeNow() {
        loop.assertOnThread()
        guard !isClosed else { return }
        isClosed = true
        loop.forget(self)
        // The lock keeps other threads from sending to the descriptor after the system has given it to another file.
        let charge = outbound.withLock { outbound in
            outbound.isClosed = true
            countWaiting(-unsentBytes)
            outbound.chunks = Queue()
            outbound.chunkBytes = 0
            stream.close()
            return outbound.surplus() + outbound.takeGathered().charge
        }
        memory.giveBack(charge)
        forgetReceived()
        handler.closed()
    }
}
