import Core

/// The places of requests that wait until every service of the cluster has a change. Peers share them. Any thread may
/// use it.
final class Confirmations: Sendable {
    private let places = Lock(PeerShares(capacity: Limits.everywhereWaitersMax))

    /// Takes a place. Returns false when the peer has its share already.
    func begin(of peer: Holder) -> Bool { places.withLock { $0.take(1, by: peer) } }

    func end(of peer: Holder) { places.withLock { $0.giveBack(1, by: peer) } }
}
