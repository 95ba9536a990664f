package import Core

/// Where the answers to a source's requests go.
package protocol AnswerGathering: AnyObject, Sendable {
    /// A part of a pass over several requests is about to be completed: answers are kept until `endGathering` was
    /// called as often as this.
    func beginGathering()
    /// Sends the answers together, unless another part follows.
    func endGathering()
}

/// A source of work, usually a connection. Peers take turns, and so do the sources of one peer. So one with much work
/// does not delay one with little, and a peer gets no more turns by having more sources.
///
/// Sendable without the compiler's proof: the state is used only under the pool's lock, and `answers` never changes
/// after the source's first work.
package final class WorkSource: @unchecked Sendable {
    enum Work {
        case verification(VerificationRequest)
        case challenges(ChallengeRequest)
        case task(@Sendable () -> Void, WorkKind)

        var kind: WorkKind { if case .task(_, let kind) = self { kind } else { .prompt } }
    }

    /// By kind. Work of one kind is done in the order in which it comes.
    var waiting = ForEachKind(Queue<Work>())
    var hasWork: Bool { WorkKind.allCases.contains { !waiting[$0].isEmpty } }
    /// Whose turns and places the source's next work shares.
    var peer: Holder
    /// The line in which its work waits, or waited last; `nil` before the source's first work.
    var line: PeerLine?

    /// Told before and after a pass completes several requests, on the worker's thread. It is set before the source's
    /// first work.
    package weak var answers: (any AnswerGathering)?

    package init(_ peer: Holder = .service) {
        self.peer = peer
    }
}
