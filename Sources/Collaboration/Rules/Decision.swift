package import Core

/// What the rules decide about a request.
package enum Decision<Answer: Sendable>: Sendable {
    case answer(Answer)
    /// The edit is to be applied. Then queries that wait for one of `topics` are decided again, and the answer is made
    /// from the receipt.
    case edit(Edit, topics: [Topic], answer: @Sendable (MutationReceipt) -> Answer)
    /// There is nothing to change. The edit is empty: it is applied to remember the request, so that its identifier
    /// stands for no other request. `answer` gets its sequence, or `nil` when there was no room for it: the request
    /// gives nobody anything, so it is answered all the same.
    case note(Edit, answer: @Sendable (_ sequence: UInt64?) -> Answer)
    /// The query waits: it is decided again after a change of one of `topics`, or gets this answer after that many
    /// milliseconds.
    case wait(topics: [Topic], milliseconds: Int, answer: Answer)
}

/// A decision about a request of any kind.
package typealias EncodedDecision = Decision<[UInt8]>

extension Edit {
    /// The edit of a request that changes nothing now. It is applied to remember the request: a repetition gets the
    /// same receipt, whatever was changed in between, and another request under its identifier is refused. `checks`:
    /// what the decision depends on.
    static func remembering(_ collaboration: CollaborationIdentifier?, _ checks: [RecordEdit]) -> Edit {
        var edit = Edit(collaboration)
        edit.records = checks
        assert(edit.isEmpty, "a request that is only remembered changes something")
        return edit
    }
}

extension Decision<ChangeReceipt> {
    /// There is nothing to change, and the request is not remembered. Requests about principals are decided so.
    static var unchanged: Decision { .answer(ChangeReceipt(sequence: nil, changed: 0)) }

    /// There is nothing to change now, and the request could give nobody anything when it is decided again. `checks`:
    /// what the decision depends on.
    static func noted(_ collaboration: CollaborationIdentifier?, _ checks: [RecordEdit]) -> Decision {
        .note(.remembering(collaboration, checks)) { ChangeReceipt(sequence: $0, changed: 0) }
    }

    /// There is nothing to change now, and the request could give access when it is decided again: it must be
    /// remembered. See `Edit.remembering`.
    static func remembered(_ collaboration: CollaborationIdentifier?, _ checks: [RecordEdit]) -> Decision {
        .change(.remembering(collaboration, checks), topics: [], count: 0)
    }

    /// The edit is to be applied; the answer says that it changed `count` things.
    static func change(_ edit: Edit, topics: [Topic], count: Int) -> Decision {
        .edit(edit, topics: topics) { ChangeReceipt(sequence: $0.sequence, changed: count) }
    }
}
