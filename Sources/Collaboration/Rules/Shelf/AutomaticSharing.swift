import Core
import Foundation

/// What an account has said about automatic sharing, by fingerprint. Ranking a shelf uses it.
struct AutomaticSharing {
    private let everything: Bool?
    private let apps: [UInt64: Bool]
    private let conversations: [UInt64: Bool]

    init(_ consent: Consent, _ context: RuleContext) {
        // Two names of one fingerprint: a refusal counts.
        func answers(_ said: [String: Bool]) -> [UInt64: Bool] {
            Dictionary(said.map { (shortNumber(ShelfKeys.short($0.key, context)), $0.value) }) { $0 && $1 }
        }
        everything = consent.everything
        apps = answers(consent.apps)
        conversations = answers(consent.conversations)
    }

    /// Whether shares in a conversation appear in an app without a pin: one level at least was allowed, none refused.
    func allows(app: UInt64, conversation: UInt64) -> Bool {
        guard everything != false else { return false }
        let inApp = apps.isEmpty ? nil : apps[app]
        let inConversation = conversations.isEmpty ? nil : conversations[conversation]
        guard inApp != false, inConversation != false else { return false }
        return everything ?? inApp ?? inConversation ?? false
    }
}
