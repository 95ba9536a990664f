import Core

/// The content of one line: who did what, with which outcome.
package struct AuditRecord: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        /// A change, made or refused by the storage.
        case mutation
        /// A request that its sender's role or grant does not allow.
        case refusal
        /// The use of a key.
        case key
        /// An act of the operator or of the service itself: start, stop, a rotation.
        case administration
    }

    package var kind: Kind
    /// The name of the principal.
    package var principal: String
    /// The peer's address and port; `nil` for the service itself.
    package var peer: String?
    /// The name of the operation or of the collaboration layer's request.
    package var operation: String
    package var collaboration: String?
    /// The change's sequence in the change log.
    package var sequence: UInt64?
    /// `done`, or the stable name of an error.
    package var outcome: String
    /// What else is to be said, for people.
    package var detail: String?

    /// The outcome of what was done.
    package static let done = "done"

    package init(
        _ kind: Kind, principal: String, peer: String? = nil, operation: String, collaboration: String? = nil,
        sequence: UInt64? = nil, outcome: String = done, detail: String? = nil
    ) {
        self.kind = kind
        self.principal = principal
        self.peer = peer
        self.operation = operation
        self.collaboration = collaboration
        self.sequence = sequence
        self.outcome = outcome
        self.detail = detail
    }

    /// An act of the service itself.
    package static func ofService(
        _ operation: String, sequence: UInt64? = nil, outcome: String = done, detail: String? = nil
    ) -> AuditRecord {
        AuditRecord(
            .administration, principal: "service", operation: operation, sequence: sequence, outcome: outcome,
            detail: detail)
    }

    /// Bytes that the record's line has at most, whatever its number, time, sequence and outcome are.
    package var lineBytesMax: Int {
        [principal, peer, operation, collaboration, detail].reduce(Limits.auditLineFrameBytesMax) { sum, text in
            sum + (text.map { AuditLine.escaped($0).utf8.count } ?? 0)
        }
    }
}
