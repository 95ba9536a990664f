import Core
import Platform

/// How many connections a service has at once, by the open files (descriptors) that its process may have.
///
/// With `descriptorsNeeded` or more there are as many places as the configuration says. With fewer, connections without
/// a place share what the places leave: those on their way out, handshakes, and visitors of pages. That is a quarter of
/// what the service itself leaves, unless they need less. So connections that find no place make others make room,
/// instead of waiting for a free descriptor. Only those that are closed at once, and are not closed yet, come on top.
package struct ConnectionBounds: Equatable, Sendable {
    /// Places of connections, at least one.
    package let places: Int
    /// Connections that had to make room and may stay for a while; others are closed at once.
    package let leaving: Int
    /// Handshakes that are unfinished. As many sockets may wait for their handshakes to begin. 0 without TLS.
    package let handshakes: Int
    /// Visitors of each server of pages. As many are told that there are too many, and where pages are encrypted, twice
    /// as many are in handshakes.
    package let visitors: Int

    /// `descriptors`: those that the process may have; `nil`: any number.
    package init(_ configuration: Configuration, descriptors: Int?) {
        let left = max(0, (descriptors ?? Int.max) - configuration.descriptorsOfProcess)
        let beside = configuration.descriptorsBesidePlaces
        places = max(1, min(configuration.connectionsMax, left - min(beside, left / 4)))
        let rest = max(0, left - places)
        /// As many as the rest has for what would be `most`.
        func share(of most: Int) -> Int {
            rest >= beside ? most : most == 0 ? 0 : max(1, most * rest / beside)
        }
        handshakes = share(of: configuration.handshakesMax)
        visitors = share(of: Limits.visitorsMax)
        let free = rest - 2 * handshakes - configuration.descriptorsPerVisitor * visitors
        leaving =
            rest >= beside
            ? max(Limits.leavingConnectionsMax, min(configuration.connectionsMax, free)) : max(1, free)
    }

    /// With the descriptors that this process may have.
    init(_ configuration: Configuration) {
        self.init(configuration, descriptors: System.limit(of: .descriptors))
    }
}

extension Configuration {
    /// Descriptors with which every place can be taken while as many other connections as may be are on their way out,
    /// in handshakes, or visit pages.
    package var descriptorsNeeded: Int { connectionsMax + descriptorsBesidePlaces + descriptorsOfProcess }

    /// Descriptors without which a service does not start.
    package var descriptorsMin: Int {
        max(Limits.descriptorsMin, descriptorsOfProcess + Limits.descriptorsOfConnectionsMin)
    }

    /// Those that are none of connections: the service's own, and three for each event loop, of workers, handshakes and
    /// pages.
    fileprivate var descriptorsOfProcess: Int {
        let others = (tls == nil ? 0 : 1) + (hasAssociation ? 1 : 0) + (hasOperators ? tls == nil ? 1 : 3 : 0)
        return Limits.descriptorsOfService + 3 * (max(1, workers) + others)
    }

    /// Those of connections without places, when there are enough.
    fileprivate var descriptorsBesidePlaces: Int {
        Limits.leavingConnectionsMax + 2 * handshakesMax + descriptorsPerVisitor * Limits.visitorsMax
    }

    /// Unfinished handshakes of clients. As many sockets may wait for theirs.
    fileprivate var handshakesMax: Int { tls == nil ? 0 : Limits.handshakesUnfinishedMax }

    /// Descriptors that all servers of pages may have for each visitor that each of them may have: two in plain text,
    /// and four with handshakes. With TLS there may be pages for operators of either kind.
    fileprivate var descriptorsPerVisitor: Int {
        (hasAssociation ? 2 : 0) + (hasOperators ? tls == nil ? 2 : 6 : 0)
    }

    private var hasAssociation: Bool { associationEndpoint != nil || inherited[.association]?.isEmpty == false }
    private var hasOperators: Bool { !operatorEndpoints.isEmpty || inherited[.operators]?.isEmpty == false }
}
