/// Whose part of a shelf a request concerns. Every request about a shelf says it: nothing is assumed.
public enum ShelfScope: Hashable, Sendable {
    /// What one app opens, by its bundle identifier. An app reads and changes only its own items, and learns neither
    /// who shared them nor in which conversations.
    case app(String)
    /// Everything. Only for the system's side, which draws attribution and knows the conversations; never for an app.
    case everyApp

    /// The field `app` of a request.
    var app: String? {
        if case .app(let app) = self { app } else { nil }
    }

    /// The field `everyApp` of a request.
    var everyApp: Bool? { self == .everyApp ? true : nil }
}
