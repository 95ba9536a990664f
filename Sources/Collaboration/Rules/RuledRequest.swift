package import Core

/// A request that has rules.
package protocol RuledRequest: CollaborationRequest {
    /// Whether it only reads: it is never decided with an edit, its identifier means nothing, and equal ones have one
    /// answer. Only queries may wait for news.
    static var isQuery: Bool { get }

    /// Decides without changing anything: on what was read, a pure function.
    ///
    /// Throws the coded error that the peer gets.
    func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer>

    /// Decides, and writes the answer as JSON.
    func decideEncoded(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> EncodedDecision

    /// What is answered when the request was carried out before, with that sequence; `nil` when it is to be decided
    /// anew, because its answer says more.
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
            // Values of the layer's own can always be written.
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
