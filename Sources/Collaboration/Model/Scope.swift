/// Which shares of an account.
public enum Scope: String, Hashable, Sendable, Codable, CaseIterable {
    /// Those that the person has started.
    case `private`
    /// Those in which the person takes part by an invitation, or after handing them over.
    case shared
}
