package import Core
import Foundation

/// What a person has said about automatic sharing.
public struct ReadConsent: RuledRequest {
    public static let name = "readConsent"
    package static let isQuery = true
    public typealias Answer = Consent

    public var account: Account

    public init(of account: Account) {
        self.account = account
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        .answer(try records.load(Consent.self, at: RecordKeys.consent(account))?.value ?? Consent())
    }
}
