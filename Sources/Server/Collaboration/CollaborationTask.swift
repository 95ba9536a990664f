import Collaboration
import Core
import Synchronization
import Wire

/// One request of the collaboration layer on its way to an answer.
final class CollaborationTask: Sendable {
    let request: any RuledRequest
    /// The identifier that the client chose.
    let identifier: MutationIdentifier
    /// What a repetition has in common with the request; `nil` for a query.
    let identity: RequestIdentity?
    let pending: PendingRequest
    /// When the request arrived, in milliseconds of the service's clock. A query's waiting time begins then.
    let arrival: UInt64
    /// The same by the clock of the shared log: see `RootSets.logTime`.
    let logArrival: UInt64?
    /// How often the request was decided again because something had changed that the decision depends on.
    let staleCount = Atomic<Int>(0)
    /// How long the request may wait for a change of another service.
    let patience = LaggingRequests.Patience()

    /// Whether the request only reads.
    var isQuery: Bool { type(of: request).isQuery }

    var kind: WorkKind { request.follows ? .following : .prompt }

    init(
        _ request: any RuledRequest, _ call: CollaborationCall, _ pending: PendingRequest, arrival: UInt64,
        logArrival: UInt64?
    ) {
        self.request = request
        identifier = call.identifier
        let isQuery = type(of: request).isQuery
        assert((request.subject == nil) == isQuery, "queries have no subject, and every other request has one")
        identity = isQuery ? nil : RequestIdentity(call, about: request.subject, by: pending.principal)
        self.pending = pending
        (self.arrival, self.logArrival) = (arrival, logArrival)
    }

    /// The error for an identifier that was used before for another content.
    var conflict: ServiceError {
        ServiceError(
            .mutationConflict,
            """
            mutation \(identifier) was applied before with other content, as another request or with other fields: \
            choose a fresh identifier
            """)
    }
}
