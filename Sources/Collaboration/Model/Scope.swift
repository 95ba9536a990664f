/// Which shares of an account.
public enum Scope: String, Hashable, Sendable, Codable, CaseIterable {
    /// Those that the person has started.
    case `private`
    /// Those that the person was invited to and has accepted.
    case shared
}
