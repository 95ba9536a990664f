package import Core

/// Undoes a start that failed: removes the collaboration and its start. Refused when anyone but the owner takes part.
/// Changes nothing when there is no such start.
public struct AbandonCollaboration: RuledRequest {
    public static let name = "abandon"
    public typealias Answer = ChangeReceipt

    public var owner: Account
    public var localIdentifier: LocalCollaborationIdentifier

    public init(owner: Account, localIdentifier: LocalCollaborationIdentifier) {
        self.owner = owner
        self.localIdentifier = localIdentifier
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkName(localIdentifier.rawValue, "localIdentifier")
        let key = RecordKeys.start(owner, localIdentifier)
        guard let start = try records.record(key) else { return .noted(nil, [.checking(key, expecting: .absent)]) }
        guard let identifier = CollaborationIdentifier(utf8: start.value) else {
            throw ServiceError(.storageDamaged, "the record of a start is damaged")
        }
        // Removed participants have no access record.
        let accesses = try records.records(
            in: .beginning(with: RecordKeys.accesses(identifier)), limit: 2, isDescending: false)
        guard accesses.items.allSatisfy({ $0.value.last == ParticipantRole.owner.code }) else {
            throw ServiceError(.notPermitted, "others take part in \(identifier): stop sharing it instead")
        }
        // The edit is stale when a participant was added at the same time.
        let arrivals = try records.record(RecordKeys.arrivals(identifier))
        return try .ending(
            identifier, try records.collaboration(identifier), records,
            expectingArrivals: arrivals.map { .version($0.version) } ?? .absent)
    }
}
