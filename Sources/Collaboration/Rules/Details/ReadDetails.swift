public import Core
import Foundation

/// What the collaboration button's popover shows.
public struct ReadDetails: RuledRequest {
    public static let name = "readDetails"
    package static let isQuery = true
    public typealias Answer = CollaborationDetails

    public var collaboration: CollaborationIdentifier
    /// The participant who sees the popover. The answer has that person's mentions and permitted operations.
    public var viewer: PersonIdentity?
    /// The language of the sentences and of the manage button, a tag of BCP 47; `nil`: English.
    public var language: String?

    public init(of collaboration: CollaborationIdentifier, viewer: PersonIdentity? = nil, language: String? = nil) {
        self.collaboration = collaboration
        self.viewer = viewer
        self.language = language
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLanguage(language)
        let language = Language.of(language)
        let stored = try records.collaboration(collaboration).value
        var operations = ManageOperation.allCases
        if let viewer {
            let role = try records.presentParticipant(viewer, in: collaboration).value.role
            operations = ManageOperation.permitted(to: role, by: stored.shareOptions)
        }
        let (participants, hasMore) = try records.participants(
            of: collaboration, stored, after: nil, limit: Limits.detailParticipantsMax, includesRemoved: false)
        return .answer(
            CollaborationDetails(
                highlight: stored.highlight(collaboration, context), shareOptions: stored.shareOptions,
                participants: participants,
                participantCount: hasMore ? try count(records) : participants.count,
                recentActivity: try records.recentNotices(
                    of: collaboration, for: viewer, count: Limits.detailNoticesMax, in: language, context),
                customItems: stored.customItems,
                manageButtonTitle: stored.manageButtonTitle ?? language.manageButtonTitle,
                manageOperations: operations))
    }

    /// Counts the access records; removed participants have none.
    private func count(_ records: borrowing some RecordReader & ~Copyable) throws(ServiceError) -> Int {
        var count = 0
        try records.visitRecords(in: .beginning(with: RecordKeys.accesses(collaboration))) { _, _ in
            count += 1
            return true
        }
        return count
    }
}
