package import Core
import Dispatch
import Foundation
package import Platform
package import Synchronization

/// One thread that waits for many sockets and serves each as it becomes ready.
///
/// Sendable without the compiler's proof: only the loop's own thread uses the state outside of `commands`. Each method
/// that only this thread may call asserts it.
package final class EventLoop: @unchecked Sendable {
    /// Times in milliseconds after which a connection is closed.
    package struct Timeouts: Sendable {
        /// Time-out of a connection on which nothing is received or sent while no request is in flight.
        package var idle: UInt64
        /// Time-out of a connection whose peer does not finish a frame, or takes none of the waiting answers.
        package var stall: UInt64

        package init(idle: UInt64, stall: UInt64) {
            self.idle = idle
            self.stall = stall
        }
    }

    /// Makes a loop, with the memory of its connections, their time-outs, and the clock of those.
    package typealias Maker =
        @Sendable (MemoryBudget, Timeouts, MonotonicClock) throws(SystemFailure) -> EventLoop

    /// Work that the loop's thread does between two polls of its sockets.
    package struct Work {
        /// Performs a portion of the work. Returns false when there is none until `wake` is called.
        let perform: () -> Bool
        /// Called when the thread wakes up because of a socket.
        let awoke: () -> Void

        package init(perform: @escaping () -> Bool, awoke: @escaping () -> Void) {
            self.perform = perform
            self.awoke = awoke
        }
    }

    private struct Commands {
        var tasks: [@Sendable () -> Void] = []
        var isWakeOnItsWay = false
        var isStopped = false
        /// Whether the thread takes no more tasks.
        var hasEnded = false
    }

    private struct Listener {
        let descriptorsKept: Int
        let accept: (CInt) -> Void
        let refuse: (SystemFailure) -> Void
    }

    let clock: MonotonicClock
    /// The memory of the connections' unfinished frames and unread answers.
    package let memory: MemoryBudget
    /// Of the loop's thread.
    private(set) var timeouts: Timeouts
    /// Number of bytes that wait to be sent on all connections of this loop.
    package let unsentBytes = Atomic<Int>(0)
    /// The loop's thread, once it runs.
    private let thread = ThreadConfinement()
    private let poller: any Poller
    /// The clock by which busy connections and work take turns.
    private let now: @Sendable () -> ContinuousClock.Instant
    /// For how long the loop's thread has had a processor.
    private let processorTime: @Sendable () -> Duration
    private var processorTurn: ProcessorTurn
    /// Whether there is no thread of the loop's own: the caller of `start` calls `turn`.
    private let isDriven: Bool
    private let commands = Lock(Commands())
    private let ended = DispatchSemaphore(value: 0)
    private let wakePipe: WakePipe
    private var work: Work?
    private var connections: [CInt: Connection] = [:]
    private var listeners: [CInt: Listener] = [:]
    /// Those at which the system could not make a connection, until `nextAccept`.
    private var pausedListeners: [CInt] = []
    private var nextAccept = UInt64.max
    /// When a listener may be told again that it was paused.
    private var nextRefusal: UInt64 = 0
    /// Connections that are ready and have not been served yet, by the kind of what they received last, in a line for
    /// each peer.
    private var readyLines = ForEachKind(FairLines<Connection>())
    private var kindTurns = KindTurns()
    /// What the poller found last.
    private var ready: [Readiness] = []
    private var nextSweep: UInt64 = 0
    /// The buffer of the connection that reads. What a connection keeps is copied out of it.
    private let scratch = ReceiveBuffer()
    /// Bytes that each ready connection may receive before the others get their turn.
    private(set) var turnBytes = Limits.turnBytesPerConnectionMax
    /// Whether the service is shutting down, so that peers have less time for taking their answers.
    private var isDraining = false

    private static let sweepMilliseconds: UInt64 = 1000
    /// Between lines about paused listeners.
    private static let refusalMilliseconds: UInt64 = 1000

    /// `poller`, the two clocks and `letOthersRun`, which ends the thread's turn on its processor, are for tests. So is
    /// `isDriven`: then the loop starts no thread, and the thread that calls `start` calls `turn` repeatedly and `stop`
    /// at last.
    ///
    /// Throws when the system has no more descriptors.
    package init(
        memory: MemoryBudget, timeouts: Timeouts, clock: MonotonicClock = .system,
        poller: (any Poller)? = nil, now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        processorTime: @escaping @Sendable () -> Duration = { System.processorTimeOfThread },
        letOthersRun: @escaping @Sendable () -> Void = { System.letOthersRun() }, isDriven: Bool = false
    ) throws(SystemFailure) {
        self.memory = memory
        self.timeouts = timeouts
        self.clock = clock
        self.now = now
        self.processorTime = processorTime
        self.isDriven = isDriven
        processorTurn = ProcessorTurn(microseconds: Limits.processorTurnMicroseconds, letOthersRun: letOthersRun)
        self.poller = if let poller { poller } else { try makePoller() }
        wakePipe = try WakePipe()
        try self.poller.watch(wakePipe.descriptor, for: .reading, isNew: true)
    }

    /// Starts a loop for connections that this side opens. They have no idle time-out: the service decides when a
    /// connection is idle.
    ///
    /// Throws `internalFault` when the system has no more descriptors.
    package static func startedForClient(name: String) throws(ServiceError) -> EventLoop {
        do throws(SystemFailure) {
            let loop = try EventLoop(
                memory: .waitedFor(bytesMax: Limits.clientReceiveBytesMax),
                timeouts: Timeouts(idle: .max / 2, stall: 60_000))
            loop.start(name: name)
            return loop
        } catch {
            throw ServiceError(.internalFault, detail: UInt32(bitPattern: error.number), "\(error)")
        }
    }

    /// Starts the thread. It does `work` in addition to serving sockets.
    ///
    /// Must be called once.
    package func start(name: String, work: sending Work? = nil) {
        self.work = work
        guard !isDriven else { return begin() }
        let thread = Thread { self.run() }
        thread.name = name
        thread.start()
    }

    /// Closes every connection and listener, and waits until the thread has ended. Must not be called on that thread,
    /// unless the loop has none of its own.
    package func stop() {
        guard !isDriven else { return end() }
        precondition(!thread.isCurrent, "the loop's thread would wait for its own end")
        execute { [self] in commands.withLock { $0.isStopped = true } }
        ended.wait()
    }

    /// Runs `task` on the loop's thread as soon as the thread gets to it. Returns false when the loop has ended: then
    /// the task is neither run nor kept.
    @discardableResult
    package func execute(_ task: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = commands.withLock { commands in
            if !commands.hasEnded { commands.tasks.append(task) }
            return !commands.hasEnded
        }
        if isTaken { wake() }
        return isTaken
    }

    /// Wakes the thread, so that it looks for tasks and work. May be called on any thread.
    package func wake() {
        let isFirst = commands.withLock { commands in
            defer { commands.isWakeOnItsWay = true }
            return !commands.isWakeOnItsWay
        }
        if isFirst { wakePipe.wake() }
    }

    /// Calls `accept` on the loop's thread for each new connection on `listener`. When the system can't make a
    /// connection, tries again after `Limits.acceptRetryMilliseconds`, and calls `refuse`, at most once a second for
    /// all listeners. `kept`: descriptors of the process that connections leave.
    package func listen(
        on listener: CInt, keepingDescriptors kept: Int = Limits.descriptorsKept,
        accept: @escaping @Sendable (CInt) -> Void,
        refuse: @escaping @Sendable (SystemFailure) -> Void
    ) {
        execute { [self] in
            listeners[listener] = Listener(descriptorsKept: kept, accept: accept, refuse: refuse)
            watchListener(listener)
        }
    }

    /// Closes all listeners.
    package func stopListening() {
        execute { [self] in closeListeners() }
    }

    /// Changes the time-outs of all connections.
    package func change(_ timeouts: Timeouts) {
        execute { [self] in self.timeouts = timeouts }
    }

    /// From now on gives up each peer that takes fewer than `Limits.drainBytesMin` bytes of its answers in
    /// `Limits.drainStallMilliseconds`.
    package func drain() {
        execute { [self] in isDraining = true }
    }

    /// Calls `body` on the loop's thread with every connection.
    package func forEachConnection(_ body: @escaping @Sendable (Connection) -> Void) {
        execute { [self] in
            for connection in Array(connections.values) { body(connection) }
        }
    }

    // MARK: On the loop's thread

    /// Traps unless the calling thread is the loop's.
    package func assertOnThread() { thread.assertIsCurrent() }

    func register(_ connection: Connection) -> Bool {
        assertOnThread()
        precondition(connections[connection.descriptor] == nil, "a descriptor belongs to two connections")
        connections[connection.descriptor] = connection
        do {
            try poller.watch(connection.descriptor, for: .reading, isNew: true)
            return true
        } catch {
            return false
        }
    }

    func watch(_ connection: Connection, for interest: Interest) {
        assertOnThread()
        assert(connections[connection.descriptor] === connection)
        // Watching fails only for lack of memory. The sweep then closes the connection when it stalls.
        try? poller.watch(connection.descriptor, for: interest, isNew: false)
    }

    func forget(_ connection: Connection) {
        assertOnThread()
        precondition(connections[connection.descriptor] === connection)
        poller.forget(connection.descriptor)
        connections[connection.descriptor] = nil
        connection.readiness = []
    }

    /// Lends the loop's buffer, empty, to the connection that reads.
    func lendScratch() -> ReceiveBuffer {
        assertOnThread()
        scratch.filled = 0
        return scratch
    }

    /// How long a peer may take fewer of its answers than `progressBytesMin`.
    var stall: UInt64 { isDraining ? min(timeouts.stall, Limits.drainStallMilliseconds) : timeouts.stall }

    /// Bytes of answers that a peer has to take in that time.
    var progressBytesMin: Int { isDraining ? Limits.drainBytesMin : 1 }

    private func run() {
        begin()
        if work != nil { System.shortenTimeSlice(microseconds: Limits.timeSliceMicroseconds) }
        while !commands.withLock({ $0.isStopped }) { turn() }
        end()
        ended.signal()
    }

    private func begin() {
        thread.bind()
        processorTurn.begin()
        nextSweep = clock.milliseconds + EventLoop.sweepMilliseconds
    }

    /// Performs a portion of work, waits for sockets if there is no more of it, and serves those that are ready.
    package func turn() {
        assertOnThread()
        let hasMoreWork = performWork()
        let now = clock.milliseconds
        let isBusy = hasMoreWork || hasReadyLines
        if isBusy { processorTurn.endIfOver() }
        let next = min(nextSweep, nextAccept)
        poller.wait(milliseconds: isBusy ? 0 : CInt(next > now ? next - now : 0), into: &ready)
        if !isBusy { processorTurn.begin() }
        if !ready.isEmpty { work?.awoke() }
        turnBytes = min(
            max(Limits.turnBytesMax / max(1, ready.count), Limits.turnBytesPerConnectionMin),
            Limits.turnBytesPerConnectionMax)
        serve(ready)
        if clock.milliseconds >= nextAccept { resumeListeners() }
        if clock.milliseconds >= nextSweep {
            sweep()
            nextSweep = clock.milliseconds + EventLoop.sweepMilliseconds
        }
    }

    private func end() {
        // What was taken is run, so that every descriptor that was given to the loop is closed below.
        let last = commands.withLock { commands in
            defer { commands.tasks = [] }
            commands.hasEnded = true
            return commands.tasks
        }
        for task in last { task() }
        closeListeners()
        for connection in Array(connections.values) { connection.closeNow() }
        precondition(connections.isEmpty && listeners.isEmpty, "a connection or listener outlives its loop")
        readyLines = ForEachKind(FairLines())
        work = nil
        thread.unbind()
    }

    /// Performs a portion of the work. While connections wait for their turn, performs further ones for a while:
    /// otherwise a peer whose portion is the next would wait for those connections first. Returns false when there is
    /// no more work.
    private func performWork() -> Bool {
        guard let work else { return false }
        let end = now() + .microseconds(Limits.workTurnMicroseconds)
        repeat {
            guard work.perform() else { return false }
        } while hasReadyLines && now() < end
        return true
    }

    /// Serves what is ready. When that is much, the peer goes first that was served for the least time. So a peer that
    /// sends little waits neither for all connections of another one, nor for a turn of each of many that send much.
    /// What is left then is served after a look at which others are ready, and after a portion of work.
    private func serve(_ ready: [Readiness]) {
        let begin = now()
        let end = begin + .microseconds(Limits.readyTurnMicroseconds)
        let servesAtOnce = !hasReadyLines && ready.count <= Limits.readySocketsAtOnce
        for event in ready {
            if let connection = connections[event.descriptor], !servesAtOnce || now() >= end {
                serveLater(connection, event.interest)
            } else {
                serve(event.descriptor, event.interest)
            }
        }
        guard hasReadyLines else { return }
        var clock = TurnClock(now: now, processorTime: processorTime)
        // What was served at once had a part of this time. Putting connections in line takes none of it.
        let start = servesAtOnce ? begin : clock.time
        var turn = Limits.readyTurnMicroseconds
        repeat {
            let kind = kindTurns.next(
                promptPeers: readyLines[.prompt].peerCount, followingPeers: readyLines[.following].peerCount)
            guard let connection = readyLines[kind].popFirst() else { return }
            let interest = connection.readiness
            connection.readiness = []
            serve(connection, interest)
            // Nobody was served while the loop had no processor.
            let length = clock.next()
            readyLines[kind].endService(after: UInt64(length))
            kindTurns.note(kind, cost: length)
            turn = kind == .following ? Limits.followingTurnMicroseconds : Limits.readyTurnMicroseconds
        } while clock.time < start + .microseconds(turn)
    }

    private var hasReadyLines: Bool { WorkKind.allCases.contains { !readyLines[$0].isEmpty } }

    /// Serves a connection that is ready when it is its peer's turn.
    func serveLater(_ connection: Connection, _ interest: Interest) {
        assertOnThread()
        if connection.readiness.isEmpty { readyLines[connection.kind].append(connection, of: connection.owner) }
        connection.readiness.formUnion(interest)
    }

    /// Nothing is done for a connection that was closed since it was ready.
    private func serve(_ connection: Connection, _ interest: Interest) {
        if interest.contains(.writing) { connection.becameWritable() }
        if interest.contains(.reading) { connection.becameReadable() }
        if interest.contains(.ended) { connection.ended() }
    }

    private func serve(_ descriptor: CInt, _ interest: Interest) {
        if descriptor == wakePipe.descriptor {
            drainCommands()
        } else if let connection = connections[descriptor] {
            serve(connection, interest)
        } else if let listener = listeners[descriptor] {
            acceptAll(descriptor, listener)
        }
    }

    private func drainCommands() {
        wakePipe.drain()
        let tasks = commands.withLock { commands in
            defer { commands.tasks = [] }
            commands.isWakeOnItsWay = false
            return commands.tasks
        }
        for task in tasks { task() }
    }

    private func acceptAll(_ descriptor: CInt, _ listener: Listener) {
        // Only for a turn, so that a flood of new connections does not delay the present ones.
        let end = now() + .microseconds(Limits.readyTurnMicroseconds)
        repeat {
            switch Socket.accept(from: descriptor, keeping: listener.descriptorsKept) {
            case .connection(let connection): listener.accept(connection)
            case .nothing: return
            case .exhausted(let failure):
                poller.forget(descriptor)
                return pause(descriptor, listener, failure)
            }
        } while now() < end
    }

    private func sweep() {
        let now = clock.milliseconds
        for connection in Array(connections.values) { connection.sweep(now: now) }
    }

    /// Connections that are closed meanwhile make room for others.
    private func pause(_ descriptor: CInt, _ listener: Listener, _ failure: SystemFailure) {
        pausedListeners.append(descriptor)
        let now = clock.milliseconds
        nextAccept = now + Limits.acceptRetryMilliseconds
        guard now >= nextRefusal else { return }
        nextRefusal = now + EventLoop.refusalMilliseconds
        listener.refuse(failure)
    }

    private func resumeListeners() {
        let paused = pausedListeners
        pausedListeners = []
        nextAccept = .max
        for descriptor in paused { watchListener(descriptor) }
    }

    /// Waits for connections on a listener; when the system refuses, tries again later.
    private func watchListener(_ descriptor: CInt) {
        guard let listener = listeners[descriptor] else { return }
        do throws(SystemFailure) {
            try poller.watch(descriptor, for: .reading, isNew: true)
        } catch {
            pause(descriptor, listener, error)
        }
    }

    private func closeListeners() {
        for descriptor in listeners.keys {
            poller.forget(descriptor)
            close(descriptor)
        }
        listeners = [:]
        pausedListeners = []
        nextAccept = .max
    }
}
