import Collaboration
import Core
import Synchronization

/// One request of the collaboration layer on its way to an answer.
final class CollaborationTask: Sendable {
    let request: any RuledRequest
    let identifier: MutationIdentifier
    let pending: PendingRequest
    /// When the request arrived, in milliseconds of the service's clock. A query's waiting time begins then.
    let arrival: UInt64
    /// How often the request was decided again because something had changed that the decision depends on.
    let staleCount = Atomic<Int>(0)

    /// Whether the request only reads.
    var isQuery: Bool { type(of: request).isQuery }

    init(
        _ request: any RuledRequest, _ identifier: MutationIdentifier, _ pending: PendingRequest, arrival: UInt64
    ) {
        self.request = request
        self.identifier = identifier
        self.pending = pending
        self.arrival = arrival
    }
}
