package import Core
import Foundation

/// Allows or refuses that shared items appear on the shelf automatically: from one conversation, in one app, or at all.
/// Consent is the person's, outside of all apps: no app gives itself consent.
public struct SetConsent: RuledRequest {
    public static let name = "setConsent"
    public typealias Answer = ChangeReceipt

    public var account: Account
    /// Must be true: no app sets consent.
    public var everyApp: Bool?
    public var level: ConsentLevel
    /// `nil` removes the earlier answer.
    public var isAllowed: Bool?

    public init(of account: Account, _ level: ConsentLevel, isAllowed: Bool?) {
        self.account = account
        everyApp = true
        self.level = level
        self.isAllowed = isAllowed
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard everyApp == true else {
            throw ServiceError(.malformedRequest, "everyApp is missing: consent is not set by an app")
        }
        let known = try records.load(Consent.self, at: RecordKeys.consent(account))
        let before = known?.value ?? Consent()
        var consent = before
        switch level {
        case .everything: consent.everything = isAllowed
        case .app(let app):
            try checkName(app, "level.app")
            consent.apps[app] = isAllowed
        case .conversation(let conversation):
            try checkName(conversation, "level.conversation")
            consent.conversations[conversation] = isAllowed
        }
        guard consent != before else { return .unchanged }
        var edit = Edit()
        edit.records = [
            try .json(
                RecordKeys.consent(account), consent, expecting: known.map { .version($0.version) } ?? .absent),
            RecordEdit(RecordKeys.shelf(account), value: []),
        ]
        return .change(edit, topics: [.shelf(account)], count: 1)
    }
}
