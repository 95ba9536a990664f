public import Core
import Foundation

/// A page of a collaboration's participants, in the order of their root hashes.
public struct ListParticipants: RuledRequest {
    public static let name = "listParticipants"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        public let participants: [Participant]
        public let hasMore: Bool
    }

    public var collaboration: CollaborationIdentifier
    /// The last one of the page before.
    public var after: PersonIdentity?
    public var limit: Int
    /// Whether those who were removed are listed too.
    public var includesRemoved: Bool

    public init(
        of collaboration: CollaborationIdentifier, after: PersonIdentity? = nil, limit: Int = 256,
        includesRemoved: Bool = false
    ) {
        self.collaboration = collaboration
        self.after = after
        self.limit = limit
        self.includesRemoved = includesRemoved
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkPage(limit, Limits.participantsPerPageMax)
        let found = try records.collaboration(collaboration)
        let (participants, hasMore) = try records.participants(
            of: collaboration, found.value, after: after, limit: limit, includesRemoved: includesRemoved)
        return .answer(Answer(participants: participants, hasMore: hasMore))
    }
}
