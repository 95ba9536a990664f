package import Core
package import Principals

/// A request with the rule that decides it.
package protocol RuledRequest: CollaborationRequest {
    /// Whether the request is a query, which only reads. The decision on a query is never an edit. Its mutation
    /// identifier is ignored. Equal queries may be decided together. Only queries may wait for a change.
    static var isQuery: Bool { get }

    /// Whether the request may wait for a change.
    var follows: Bool { get }

    /// What the request is about; `nil` for a query. Every request that changes something has a subject.
    var subject: RequestSubject? { get }

    /// What a role must cover for the request to be allowed. It follows from the request's fields alone.
    var roleScope: RequestScope { get }

    /// Decides the request: a pure function of the context and the records.
    ///
    /// Throws the coded error that the peer gets.
    func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer>

    /// Decides, and writes the answer as JSON.
    func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision

    /// The answer to a repetition of a request that was applied at `sequence`. `nil` when the answer is more than a
    /// receipt; then the request is decided again.
    func answer(toRepetitionOf sequence: UInt64) -> Answer?
}

extension RuledRequest {
    package static var isQuery: Bool { false }

    package var follows: Bool { false }

    package var subject: RequestSubject? { nil }

    package func answer(toRepetitionOf sequence: UInt64) -> Answer? { nil }
}

extension RuledRequest where Answer == ChangeReceipt {
    package func answer(toRepetitionOf sequence: UInt64) -> Answer? { ChangeReceipt(sequence: sequence, changed: 0) }
}

extension RuledRequest {
    /// Decides, and writes the answer as JSON.
    package func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision {
        switch try decide(context, records) {
        case .answer(let answer): return .answer(try JSON.encode(answer))
        case .edit(let edit, let topics, let answer):
            // The layer's own values can always be written as JSON.
            return .edit(edit, topics: topics) { (try? JSON.encode(answer($0))) ?? [] }
        case .note(let edit, let answer):
            return .note(edit) { (try? JSON.encode(answer($0))) ?? [] }
        case .wait(let topics, let milliseconds, let answer):
            return .wait(topics: topics, milliseconds: milliseconds, answer: try JSON.encode(answer))
        }
    }
}

extension RuledRequest {
    /// `answer(toRepetitionOf:)` as JSON.
    package func encodedAnswer(toRepetitionOf sequence: UInt64) throws(ServiceError) -> [UInt8]? {
        try answer(toRepetitionOf: sequence).map { answer throws(ServiceError) in try JSON.encode(answer) }
    }
}
