package import Core

/// A request with the rule that decides it.
package protocol RuledRequest: CollaborationRequest {
    /// Whether the request only reads. A query is never decided with an edit, its mutation identifier is ignored, and
    /// equal queries get one answer. Only queries may wait for a change.
    static var isQuery: Bool { get }

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

    /// The answer to a request that was already applied at `sequence`; `nil` when the answer says more than a receipt,
    /// so that the request is decided again.
    func answer(toRepetitionOf sequence: UInt64) -> Answer?
}

extension RuledRequest {
    package static var isQuery: Bool { false }

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
