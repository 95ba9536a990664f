import Core
import Foundation

/// The conversations and apps that an account has refused, by fingerprint. Ranking a shelf uses them.
struct Refusals {
    let everything: Bool
    let apps: Set<UInt64>
    let conversations: Set<UInt64>

    init(_ consent: Consent, _ context: RuleContext) {
        func refused(_ answers: [String: Bool]) -> Set<UInt64> {
            Set(answers.filter { !$0.value }.keys.map { shortNumber(ShelfKeys.short($0, context)) })
        }
        everything = !(consent.everything ?? true)
        apps = refused(consent.apps)
        conversations = refused(consent.conversations)
    }

    func allows(app: UInt64, conversation: UInt64) -> Bool {
        !everything && !apps.contains(app) && !conversations.contains(conversation)
    }
}
