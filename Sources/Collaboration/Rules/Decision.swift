package import Core

/// What the rules decide about a request.
package enum Decision<Answer: Sendable>: Sendable {
    case answer(Answer)
    /// The edit is to be made, `topics` are news then, and the answer follows from its receipt.
    case edit(Edit, topics: [Topic], answer: @Sendable (MutationReceipt) -> Answer)
    /// There is nothing new: decide again when one of `topics` is news, or answer after that many milliseconds.
    case wait(topics: [Topic], milliseconds: Int, answer: Answer)
}

/// A decision about a request of any kind.
package typealias EncodedDecision = Decision<[UInt8]>
