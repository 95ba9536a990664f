public import Collaboration
public import Core

/// The verdict on one proof, with a grant for the participant's next requests.
public struct OpenDecision: Hashable, Sendable {
    /// Whether the proof holds, and if not, why.
    public let verdict: Verdict
    /// The grant, if the verdict is `granted` and the person is a participant of the collaboration layer. `nil` for a
    /// root hash that was added to the set without the layer.
    public let grant: AccessGrant?

    /// Identifiers of the share options that are selected in the collaboration, so that the app can apply those that
    /// mean something to it only. `nil` without a grant, or when they were not asked for.
    public let selectedOptions: [String]?

    /// A decision as the service gives it; for tests and simulated services.
    public init(verdict: Verdict, grant: AccessGrant? = nil, selectedOptions: [String]? = nil) {
        self.verdict = verdict
        self.grant = grant
        self.selectedOptions = selectedOptions
    }
}
