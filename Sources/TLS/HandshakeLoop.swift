package import Core
import Dispatch
import Foundation
package import Platform
import Synchronization
package import Transport

/// One thread that performs the handshakes of new connections.
///
/// The event loops serve established connections on threads of their own, which the system prefers to this one. So a
/// flood of handshakes delays other handshakes only. Their number and time are bounded, and peers share them: when
/// there are too many, the peer with the most loses its oldest one. Peers take turns at beginning, so the flood of one
/// address keeps no other address out.
///
/// Sendable without the compiler's proof: only the loop's thread uses the state outside of `accepted`. Each method
/// that only this thread may call asserts it.
package final class HandshakeLoop: @unchecked Sendable {
    /// The bounds of handshakes.
    package struct Bounds: Sendable {
        package var unfinishedMax = Limits.handshakesUnfinishedMax
        package var milliseconds = Limits.handshakeMillisecondsMax

        package init() {}
    }

    package typealias Completion = @Sendable (any ByteStream) -> Void

    private struct Accepted {
        let descriptor: CInt
        let peer: Holder
        let begun: UInt64
        let completion: Completion
    }

    private struct AcceptedSockets {
        var waiting = PeerLines<Accepted>()
        var isStopped = false
        var hasEnded = false
    }

    private struct Unfinished {
        let handshake: Handshake
        let peer: Holder
        let number: UInt64
        let completion: Completion
        var interest: Interest
    }

    private let tls: ServerTLS
    private let bounds: Bounds
    private let clock: MonotonicClock
    private let log: Log
    private let accepted = Lock(AcceptedSockets())
    private let ended = DispatchSemaphore(value: 0)
    private let thread = ThreadConfinement()
    /// Handshakes that were finished, and those that were refused or given up.
    private let finished = Atomic<UInt64>(0)
    private let refused = Atomic<UInt64>(0)
    private let poller: any Poller
    private let wakePipe: WakePipe
    private var unfinished: [CInt: Unfinished] = [:]
    /// The unfinished handshakes of each peer, in number; none is 0.
    private var counts: [Holder: Int] = [:]
    /// Descriptors in the order in which their handshakes began, with their numbers. An entry whose handshake is over
    /// is skipped: its descriptor has another number or none.
    private var order = Queue<(descriptor: CInt, number: UInt64, deadline: UInt64)>()
    private var nextNumber: UInt64 = 0

    /// `log` gets a line about each refused handshake.
    ///
    /// Throws when the system has no more descriptors.
    package init(
        _ tls: ServerTLS, bounds: Bounds = Bounds(), clock: MonotonicClock = .system,
        log: Log
    ) throws(SystemFailure) {
        self.tls = tls
        self.bounds = bounds
        self.clock = clock
        self.log = log
        poller = try makePoller()
        wakePipe = try WakePipe()
        try poller.watch(wakePipe.descriptor, for: .reading, isNew: true)
    }

    /// Starts the thread. Must be called once.
    package func start() {
        let thread = Thread { self.run() }
        thread.name = "rootgate handshakes"
        thread.start()
    }

    /// Closes every connection whose handshake is not finished, and waits until the thread has ended.
    package func stop() {
        precondition(!thread.isCurrent, "the thread would wait for its own end")
        accepted.withLock { $0.isStopped = true }
        wakePipe.wake()
        ended.wait()
    }

    /// Begins the handshake on a socket that was accepted, and takes the socket over. Calls `completion` on the loop's
    /// thread when the handshake has succeeded; otherwise the socket is closed. May be called on any thread.
    package func begin(_ descriptor: CInt, completion: @escaping Completion) {
        let peer = Holder(of: descriptor)
        let socket = Accepted(descriptor: descriptor, peer: peer, begun: clock.milliseconds, completion: completion)
        let (isTaken, surplus) = accepted.withLock { accepted -> (Bool, Accepted?) in
            if accepted.hasEnded { return (false, nil) }
            accepted.waiting.append(socket, of: peer)
            let isFull = accepted.waiting.count > bounds.unfinishedMax
            return (true, isFull ? accepted.waiting.removeFromLongest() : nil)
        }
        guard isTaken else {
            close(descriptor)
            return
        }
        if let surplus {
            sayThereAreTooMany(surplus.descriptor)
            close(surplus.descriptor)
        }
        wakePipe.wake()
    }

    /// Handshakes that were finished, and those that were refused or given up. A port scan is neither.
    package var outcomes: (finished: UInt64, refused: UInt64) {
        (finished.load(ordering: .relaxed), refused.load(ordering: .relaxed))
    }

    private func sayThereAreTooMany(_ descriptor: CInt) {
        refused.add(1, ordering: .relaxed)
        let name = Socket.peerName(of: descriptor, isFull: log.showsAddresses)
        log(
            .warning,
            "closed a TLS connection from \(name): more than \(bounds.unfinishedMax) handshakes are unfinished")
    }

    // MARK: On the loop's thread

    private func run() {
        thread.bind()
        System.yieldToOtherThreads()
        var ready: [Readiness] = []
        var nextCheck = clock.milliseconds + Limits.certificateCheckMilliseconds
        var hasMore = false
        while !accepted.withLock({ $0.isStopped }) {
            let pause = hasMore ? 0 : CInt(Limits.certificateCheckMilliseconds)
            poller.wait(milliseconds: pause, into: &ready)
            for event in ready {
                if event.descriptor == wakePipe.descriptor { wakePipe.drain() } else { advance(event.descriptor) }
            }
            hasMore = beginAccepted()
            giveUpLate()
            if clock.milliseconds >= nextCheck {
                tls.reloadIfChanged()
                nextCheck = clock.milliseconds + Limits.certificateCheckMilliseconds
            }
        }
        for entry in unfinished.values { poller.forget(entry.handshake.descriptor) }
        unfinished = [:]
        counts = [:]
        accepted.withLock { accepted in
            accepted.hasEnded = true
            while let socket = accepted.waiting.popFirst() { close(socket.descriptor) }
        }
        thread.unbind()
        ended.signal()
    }

    /// Begins the handshakes on some accepted sockets. Returns whether more are waiting.
    private func beginAccepted() -> Bool {
        thread.assertIsCurrent()
        for _ in 0..<Limits.handshakesBegunPerTurn {
            guard let socket = accepted.withLock({ $0.waiting.popFirst() }) else { return false }
            begin(socket)
        }
        return accepted.withLock { !$0.waiting.isEmpty }
    }

    private func begin(_ socket: Accepted) {
        thread.assertIsCurrent()
        counts[socket.peer, default: 0] += 1
        if unfinished.count >= bounds.unfinishedMax { giveUpOldest() }
        do throws(TLSFailure) {
            let handshake = try tls.beginHandshake(on: socket.descriptor)
            nextNumber += 1
            let entry = Unfinished(
                handshake: handshake, peer: socket.peer, number: nextNumber, completion: socket.completion,
                interest: .reading)
            do throws(SystemFailure) {
                try poller.watch(socket.descriptor, for: .reading, isNew: true)
            } catch {
                countOne(lessOf: socket.peer)
                // The handshake closes the socket.
                return log(.warning, "closed a new connection: \(error)")
            }
            unfinished[socket.descriptor] = entry
            precondition(unfinished.count <= bounds.unfinishedMax, "more handshakes are unfinished than may be")
            order.append((socket.descriptor, nextNumber, socket.begun + bounds.milliseconds))
            advance(socket.descriptor)
        } catch {
            countOne(lessOf: socket.peer)
            log(.warning, "closed a new connection: \(error)")
        }
    }

    private func countOne(lessOf peer: Holder) {
        let left = counts[peer, default: 0] - 1
        precondition(left >= 0, "a peer has fewer handshakes than none")
        counts[peer] = left == 0 ? nil : left
    }

    private func advance(_ descriptor: CInt) {
        thread.assertIsCurrent()
        guard let entry = unfinished[descriptor] else { return }
        do throws(HandshakeFailure) {
            switch try entry.handshake.advance() {
            case .waits(let interest):
                guard interest != entry.interest else { return }
                unfinished[descriptor]?.interest = interest
                // Watching fails only for lack of memory. The handshake then ends when it is late.
                try? poller.watch(descriptor, for: interest, isNew: false)
            case .done(let stream):
                forget(descriptor)
                finished.add(1, ordering: .relaxed)
                entry.completion(stream)
            }
        } catch {
            forget(descriptor)
            // A port scan is not logged.
            if error != .ended { refuse(entry, error) }
        }
    }

    private func refuse(_ entry: Unfinished, _ failure: HandshakeFailure) {
        refused.add(1, ordering: .relaxed)
        let name = Socket.peerName(of: entry.handshake.descriptor, isFull: log.showsAddresses)
        log(.warning, "refused a TLS connection from \(name): \(failure)")
    }

    private func forget(_ descriptor: CInt) {
        thread.assertIsCurrent()
        poller.forget(descriptor)
        if let entry = unfinished.removeValue(forKey: descriptor) { countOne(lessOf: entry.peer) }
    }

    /// Gives up the handshakes that take too long.
    private func giveUpLate() {
        thread.assertIsCurrent()
        let now = clock.milliseconds
        while let first = order.first {
            let entry = unfinished[first.descriptor]
            let isUnderWay = entry?.number == first.number
            guard !isUnderWay || now > first.deadline else { return }
            order.removeFirst()
            guard isUnderWay, let entry else { continue }
            forget(first.descriptor)
            refuse(entry, .timedOut)
        }
    }

    /// Gives up the handshake that has been under way for the longest time among those of the peer with the most,
    /// because there are too many.
    private func giveUpOldest() {
        thread.assertIsCurrent()
        // The one that is about to begin is counted already, so a peer with as many as others is one of the most.
        let most = counts.values.max()
        let oldest = unfinished.values.lazy.filter { [counts] in counts[$0.peer] == most }.min { $0.number < $1.number }
        guard let oldest else { return }
        sayThereAreTooMany(oldest.handshake.descriptor)
        forget(oldest.handshake.descriptor)
    }
}
