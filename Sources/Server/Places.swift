import Core

/// The places of connections, as many as `ConnectionBounds` says. Peers share them (`PeerShares`). A few are kept for
/// connections from this machine.
///
/// A newcomer that is above its peer's share takes the place of the connection that has been idle for the longest time,
/// of the peer with the most connections. Connections that were refused, or are on their way out, take no places.
/// Everything that happens under the lock takes a bounded time.
final class Places: Sendable {
    enum Outcome: Sendable {
        case seated(Place)
        /// There is no place. `isTold`: whether the connection may live until it has got the error that says so. Then
        /// `left` is to be called at its end.
        case refused(isTold: Bool)
    }

    private struct State {
        var general: PeerShares
        var kept: PeerShares
        /// The places of each peer, in the order in which they were taken or last looked at. Some are not taken any
        /// more, or are another peer's now.
        var queues: [Holder: Queue<Place>] = [:]
        var counts: [Holder: Int] = [:]
        /// The peers with so many connections; no set is empty.
        var peersByCount: [Int: Set<Holder>] = [:]
        var largestCount = 0
        /// Connections that were refused or had to go, and are not closed yet.
        var leaving = 0

        /// Changes the number of the peer's connections by one or minus one.
        mutating func count(_ peer: Holder, _ change: Int) {
            let before = counts[peer, default: 0]
            let now = before + change
            precondition(now >= 0, "a peer has fewer connections than none")
            counts[peer] = now == 0 ? nil : now
            peersByCount[before]?.remove(peer)
            if peersByCount[before]?.isEmpty == true { peersByCount[before] = nil }
            if now > 0 { peersByCount[now, default: []].insert(peer) } else { queues[peer] = nil }
            largestCount = max(largestCount, now)
            // One step at most: the peer that had the most has one less now.
            if peersByCount[largestCount] == nil { largestCount = max(0, largestCount - 1) }
        }

        /// Removes the entries that connections have left behind which came and went.
        mutating func tidy(_ peer: Holder) {
            let count = counts[peer, default: 0]
            guard var rest = queues[peer], rest.count > 2 * count + Limits.idleConnectionsCompared else { return }
            var others = Queue<Place>()
            while let other = rest.popFirst() { if other.isTaken, other.peer == peer { others.append(other) } }
            queues[peer] = others
        }

        mutating func seat(_ peer: Holder, isKept: Bool) -> Place {
            let place = Place(peer, isKept: isKept)
            count(peer, 1)
            queues[peer, default: Queue()].append(place)
            return place
        }

        /// The place of the connection that has been idle for the longest time among some of the peer with the most;
        /// `nil` when all of those have requests in flight. Suspended queries are worth more than nothing.
        mutating func longestIdle(isKeptAllowed: Bool) -> Place? {
            guard let peer = peersByCount[largestCount]?.first, var queue = queues[peer] else { return nil }
            queues[peer] = nil
            defer { queues[peer] = queue }
            var best: (place: Place, occupation: Occupation)?
            for _ in 0..<min(queue.count, Limits.idleConnectionsCompared) {
                guard let place = queue.popFirst() else { break }
                guard place.isTaken, place.peer == peer else { continue }
                queue.append(place)
                guard isKeptAllowed || !place.isKept, let occupation = place.occupation else { continue }
                if let found = best, !occupation.isBefore(found.occupation) { continue }
                best = (place, occupation)
            }
            return best?.place
        }
    }

    /// Connections at once.
    let count: Int
    /// Connections on their way out from which on others that have to make room go at once.
    private let leavingMax: Int
    private let state: Lock<State>

    convenience init(_ configuration: Configuration) {
        let bounds = ConnectionBounds(configuration)
        self.init(count: bounds.places, leavingMax: bounds.leaving)
    }

    init(count: Int, leavingMax: Int = Limits.leavingConnectionsMax) {
        (self.count, self.leavingMax) = (count, leavingMax)
        let kept = min(Limits.localConnectionsKept, count / Limits.localConnectionsPart)
        state = Lock(State(general: PeerShares(capacity: count - kept), kept: PeerShares(capacity: kept)))
    }

    /// Takes a place for a new connection of the peer, if need be that of another connection.
    func take(_ peer: Holder) -> Outcome {
        let (outcome, victim) = state.withLock { state -> (Outcome, (place: Place, isTold: Bool)?) in
            if state.general.take(1, by: peer) { return (.seated(state.seat(peer, isKept: false)), nil) }
            if peer.isLocal, state.kept.take(1, by: peer) {
                return (.seated(state.seat(peer, isKept: true)), nil)
            }
            guard let victim = state.longestIdle(isKeptAllowed: peer.isLocal) else {
                let isTold = state.leaving < min(leavingMax, Limits.leavingConnectionsMax)
                if isTold { state.leaving += 1 }
                return (.refused(isTold: isTold), nil)
            }
            victim.isTaken = false
            state.count(victim.peer, -1)
            // Whoever connects again and again must not have any number of connections that are on their way out.
            // Up to there they stay for a while, so that he does not connect again at once.
            let isTold = state.leaving < leavingMax
            state.leaving += 1
            if victim.isKept {
                state.kept.pass(from: victim.peer, to: peer)
            } else {
                state.general.pass(from: victim.peer, to: peer)
            }
            return (.seated(state.seat(peer, isKept: victim.isKept)), (victim, isTold))
        }
        if let victim { victim.place.makeRoom(of: count, isTold: victim.isTold) }
        return outcome
    }

    /// A connection is closed. `place` is `nil` when it was refused.
    func left(_ place: Place?) {
        state.withLock { state in
            guard let place, place.isTaken else {
                precondition(state.leaving > 0)
                state.leaving -= 1
                return
            }
            place.isTaken = false
            if place.isKept {
                state.kept.giveBack(1, by: place.peer)
            } else {
                state.general.giveBack(1, by: place.peer)
            }
            state.count(place.peer, -1)
            state.tidy(place.peer)
        }
    }

    /// Counts the place as another peer's from now on. It stays where it is when it is more than that one's share, so
    /// that nobody gets a share again and again by turning out to be somebody else.
    func move(_ place: Place, to peer: Holder) {
        state.withLock { state in
            let before = place.peer
            guard place.isTaken, before != peer else { return }
            let isPassed =
                place.isKept
                ? state.kept.passWithinShare(from: before, to: peer)
                : state.general.passWithinShare(from: before, to: peer)
            guard isPassed else { return }
            place.peer = peer
            state.count(before, -1)
            state.tidy(before)
            state.count(peer, 1)
            state.queues[peer, default: Queue()].append(place)
            state.tidy(peer)
        }
    }

    /// Places that are taken.
    var taken: Int { state.withLock { $0.general.taken + $0.kept.taken } }
}

/// A connection's place.
///
/// Sendable without the compiler's proof: `isTaken` and `peer` are used only under the lock of `Places`. The rest does
/// not change, or has a lock of its own.
final class Place: @unchecked Sendable {
    fileprivate(set) var peer: Holder
    /// Whether it is one of those that are kept for connections from this machine.
    let isKept: Bool
    /// Whether the connection is neither closed nor asked to go.
    fileprivate(set) var isTaken = true
    private let holder = Lock<Occupant>(Occupant())

    private struct Occupant {
        weak var responder: Responder?
    }

    fileprivate init(_ peer: Holder, isKept: Bool) {
        self.peer = peer
        self.isKept = isKept
    }

    /// Says whose place it is. Until then nobody else gets it.
    func seat(_ responder: Responder) {
        holder.withLock { $0.responder = responder }
    }

    /// What the connection does; `nil` when it can't make room.
    fileprivate var occupation: Occupation? { holder.withLock { $0.responder }?.occupation }

    fileprivate func makeRoom(of count: Int, isTold: Bool) {
        holder.withLock { $0.responder }?.makeRoom(connectionsMax: count, isTold: isTold)
    }
}

/// What a connection without requests in flight does, and since when, in milliseconds of the service's clock.
struct Occupation: Equatable, Sendable {
    /// Whether queries are suspended.
    var isWaiting: Bool
    var since: UInt64

    /// Whether a connection that does this has to go before the other.
    func isBefore(_ other: Occupation) -> Bool {
        (isWaiting ? 1 : 0, since) < (other.isWaiting ? 1 : 0, other.since)
    }
}
