/// The rule by which peers share a number of places or bytes: a peer may hold at most as much as is free beside it.
///
/// So a peer alone gets half of all, each of two gets a third, and a newcomer always finds some free. What a peer does
/// not need, the others may have.
package struct Shares: Sendable {
    package let capacity: Int
    /// What all peers hold together.
    package private(set) var taken = 0

    package init(capacity: Int) {
        precondition(capacity >= 0)
        self.capacity = capacity
    }

    /// The most that a peer may hold when the others hold so much: half of the rest, rounded up.
    package func most(besides others: Int) -> Int {
        max(0, capacity - others + 1) / 2
    }

    /// Whether a peer that holds `own` may take `count` more.
    package func allows(_ count: Int, to own: Int) -> Bool {
        own + count <= most(besides: taken - own)
    }

    package mutating func take(_ count: Int) {
        precondition(count >= 0)
        taken += count
    }

    package mutating func giveBack(_ count: Int) {
        precondition(count >= 0 && count <= taken, "more is given back than was taken")
        taken -= count
    }
}

/// Places that peers share by the rule of `Shares`, with what each of them holds.
package struct PeerShares: Sendable {
    private var shares: Shares
    private var held: [Holder: Int] = [:]

    package init(capacity: Int) {
        shares = Shares(capacity: capacity)
    }

    /// What all peers hold together.
    package var taken: Int { shares.taken }

    /// Takes `count` places for a peer. Returns false, and takes none, when they are more than its share.
    package mutating func take(_ count: Int, by peer: Holder) -> Bool {
        let place = held.index(forKey: peer)
        guard shares.allows(count, to: place.map { held.values[$0] } ?? 0) else { return false }
        shares.take(count)
        if let place {
            held.values[place] += count
        } else if count > 0 {
            held[peer] = count
        }
        return true
    }

    /// Takes places for a peer whatever its share is now, and whatever is left of the capacity: it has had them before,
    /// or another peer has just given them back for it.
    package mutating func takeBack(_ count: Int, by peer: Holder) {
        shares.take(count)
        held[peer, default: 0] += count
    }

    /// Gives back places that the peer holds.
    package mutating func giveBack(_ count: Int, by peer: Holder) {
        guard count > 0 else { return }
        guard let place = held.index(forKey: peer), held.values[place] >= count else {
            preconditionFailure("a peer gives back more than it holds")
        }
        held.values[place] -= count
        if held.values[place] == 0 { held.remove(at: place) }
        shares.giveBack(count)
    }

    /// Passes one place of a peer to another one. Returns false, and passes none, when it is more than that one's
    /// share.
    package mutating func passWithinShare(from peer: Holder, to other: Holder) -> Bool {
        giveBack(1, by: peer)
        if take(1, by: other) { return true }
        takeBack(1, by: peer)
        return false
    }

    /// Passes one place of a peer to another one, whatever that one's share is.
    package mutating func pass(from peer: Holder, to other: Holder) {
        giveBack(1, by: peer)
        takeBack(1, by: other)
    }
}
