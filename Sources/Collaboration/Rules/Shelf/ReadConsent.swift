package import Core
import Foundation

/// What a person has said about automatic sharing. Consent is the person's, outside of all apps: it names other apps
/// and conversations.
public struct ReadConsent: RuledRequest {
    public static let name = "readConsent"
    package static let isQuery = true
    public typealias Answer = Consent

    public var account: Account
    /// Must be true: no app reads consent.
    public var everyApp: Bool

    public init(of account: Account) {
        self.account = account
        everyApp = true
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard everyApp else {
            throw ServiceError(.malformedRequest, "everyApp is false: consent is not read by an app")
        }
        return .answer(try records.load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent())
    }
}
