import Core

extension Configuration {
    /// Descriptors that take no places of connections: the service's own, three for each event loop, and unfinished
    /// handshakes.
    package var descriptorsBesidePlaces: Int {
        Limits.descriptorsOfService + 3 * max(1, workers) + (tls == nil ? 0 : Limits.handshakesUnfinishedMax)
    }

    /// Descriptors with which every place can be taken, and `Limits.leavingConnectionsMax` connections can be on their
    /// way out.
    package var descriptorsNeeded: Int {
        connectionsMax + Limits.leavingConnectionsMax + descriptorsBesidePlaces
    }

    /// Connections that had to make room and may stay for a while, when the process may have so many descriptors
    /// (`nil`: any number): those that the places leave, but no more than there are places.
    func leavingConnectionsMax(descriptors: Int?) -> Int {
        let left = descriptors.map { $0 - connectionsMax - descriptorsBesidePlaces } ?? connectionsMax
        return max(Limits.leavingConnectionsMax, min(connectionsMax, left))
    }
}
