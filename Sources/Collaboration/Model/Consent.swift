/// A person's consent to automatic sharing: that shared items appear on the shelf by themselves. A level without an
/// answer neither allows nor refuses.
public struct Consent: Hashable, Sendable, Codable {
    public internal(set) var everything: Bool?
    public internal(set) var apps: [String: Bool] = [:]
    public internal(set) var conversations: [String: Bool] = [:]

    public init() {}

    /// Whether links that are shared in a conversation appear in an app without a pin: at least one of the three levels
    /// was allowed, and none was refused.
    public func allows(app: String, conversation: String) -> Bool {
        let answers = [everything, apps[app], conversations[conversation]]
        return answers.contains(true) && !answers.contains(false)
    }

    /// The level at which turning automatic sharing on for an app would change something: the app. `nil` when it would
    /// change nothing, because the app or everything is allowed already, or because everything is refused.
    func offer(for app: String) -> ConsentLevel? {
        switch (everything, apps[app]) {
        case (false, _), (_, true), (true, nil): nil
        default: .app(app)
        }
    }
}
