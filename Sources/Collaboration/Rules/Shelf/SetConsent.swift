package import Core
import Foundation

/// Allows or refuses that shared items appear on the shelf automatically: from one conversation, in one app, or at all.
/// Consent is the person's, outside of all apps: no app gives itself consent.
public struct SetConsent: RuledRequest {
    public static let name = "setConsent"
    public typealias Answer = ChangeReceipt

    public var account: Account
    /// Must be true: no app sets consent.
    public var everyApp: Bool
    public var level: ConsentLevel
    /// `clear` removes the earlier answer; `keep` is refused.
    public var isAllowed: Patch<Bool>

    public init(of account: Account, _ level: ConsentLevel, isAllowed: Bool?) {
        self.account = account
        everyApp = true
        self.level = level
        self.isAllowed = Patch(isAllowed)
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard everyApp else {
            throw ServiceError(.malformedRequest, "everyApp is false: consent is not set by an app")
        }
        guard isAllowed != .keep else {
            throw ServiceError(.malformedRequest, "isAllowed is missing: null removes the earlier answer")
        }
        let answer = isAllowed.value
        let known = try records.load(Consent.self, at: RecordKeys.consent(account))
        let before = known?.value ?? Consent()
        var consent = before
        switch level {
        case .everything: consent.everything = answer
        case .app(let app):
            try checkIdentifier(app, "level.app")
            consent.apps[app] = answer
        case .conversation(let conversation):
            try checkIdentifier(conversation, "level.conversation")
            consent.conversations[conversation] = answer
        }
        let expectation: RecordEdit.Expectation = known.map { .version($0.version) } ?? .absent
        guard consent != before else {
            let check = RecordEdit.checking(RecordKeys.consent(account), expecting: expectation)
            return answer == false ? .noted(nil, [check]) : .remembered(nil, [check])
        }
        var edit = Edit()
        edit.records = [try .json(RecordKeys.consent(account), consent, expecting: expectation)]
        // Consent is taken back on a full disk, too: replacing a record needs no space. Every share writes this one, so
        // without it the shelf is empty.
        let hasShelf = try records.record(RecordKeys.shelf(account)) != nil
        if hasShelf || answer == true {
            edit.records.append(
                RecordEdit(RecordKeys.shelf(account), value: [], expecting: hasShelf ? .present : .anything))
        }
        return .change(edit, topics: [.shelf(account)], count: 1)
    }
}
