public import Core
import Foundation

/// Clears the feed of the participant whose grant it is: posts until now are no longer listed there. Other views of the
/// collaboration still show them: its feed, feeds of other participants, feeds of accounts, and its details.
public struct ClearNotices: RuledRequest {
    public static let name = "clearNotices"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    public var grant: AccessGrant

    public init(of collaboration: CollaborationIdentifier, by grant: AccessGrant) {
        self.collaboration = collaboration
        self.grant = grant
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let (reader, access) = try records.bearer(of: grant, in: collaboration, context)
        var edit = Edit(collaboration)
        edit.records = access.expectations(of: reader, in: collaboration)
        let key = RecordKeys.cleared(collaboration, reader)
        let before = try records.record(key)
        edit.records.append(
            RecordEdit(
                key, value: bigEndianBytes(try records.lastSequence()),
                expecting: before.map { .version($0.version) } ?? .absent))
        return .change(edit, topics: [], count: 1)
    }
}
