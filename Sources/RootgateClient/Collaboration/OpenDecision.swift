public import Collaboration
public import Core

/// What the gate said of one proof, and what the person may go on with.
public struct OpenDecision: Hashable, Sendable {
    public let verdict: Verdict
    /// Only with `granted`, and only for those who take part by `AddParticipants` or its like.
    public let grant: AccessGrant?

    public init(verdict: Verdict, grant: AccessGrant? = nil) {
        self.verdict = verdict
        self.grant = grant
    }
}
