public import Core

/// Looks participants up by their identities, removed ones too: a backend that is told of a removed identity finds the
/// account whose access it has to end.
public struct FindParticipants: RuledRequest {
    public static let name = "findParticipants"
    package static let isQuery = true

    public struct Answer: Hashable, Codable, Sendable {
        /// In the order of the request, each once.
        public let participants: [Participant]
        /// Those who never took part.
        public let unknown: [PersonIdentity]
    }

    public var collaboration: CollaborationIdentifier
    public var identities: [PersonIdentity]

    public init(_ identities: [PersonIdentity], in collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
        self.identities = identities
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLimit(identities.count, Limits.participantsPerPageMax, "identities")
        let stored = try records.collaboration(collaboration).value
        var participants: [Participant] = []
        var unknown: [PersonIdentity] = []
        var seen: Set<PersonIdentity> = []
        for person in identities where seen.insert(person).inserted {
            if let participant = try records.describe(person, in: collaboration, stored) {
                participants.append(participant)
            } else {
                unknown.append(person)
            }
        }
        return .answer(Answer(participants: participants, unknown: unknown))
    }
}
