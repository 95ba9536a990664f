public import Core
public import Foundation

/// Starts a collaboration under an identifier that it had at another service, so that links and identities, which
/// derive from it, stay valid. Nobody takes part yet: participants are added as usual.
///
/// A collaboration or a set of that identifier is left as it is: the request is refused. Grants of an earlier
/// collaboration of that identifier stay revoked.
public struct PrepareCollaborationAs: RuledRequest {
    public static let name = "prepareAs"
    public typealias Answer = PrepareCollaboration.Answer

    public var collaboration: CollaborationIdentifier
    public var owner: Account
    /// The description of the content, as for a start.
    public var metadata: CollaborationMetadata
    /// Identifiers of the selected options; `nil`: as in the metadata.
    public var selectedOptions: [String]?
    /// The owner's name in notices.
    public var ownerName: String?
    /// Devices sign nonces of their own choice, which are remembered for that long; `nil`: they sign challenges.
    public var nonceWindowSeconds: UInt32?
    /// When the collaboration was started, at the latest now; `nil`: now.
    public var creationDate: Date?

    public init(
        _ collaboration: CollaborationIdentifier, owner: Account, metadata: CollaborationMetadata,
        selectedOptions: [String]? = nil, ownerName: String? = nil, nonceWindowSeconds: UInt32? = nil,
        creationDate: Date? = nil
    ) {
        self.collaboration = collaboration
        self.owner = owner
        self.metadata = metadata
        self.selectedOptions = selectedOptions
        self.ownerName = ownerName
        self.nonceWindowSeconds = nonceWindowSeconds
        self.creationDate = creationDate
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkIdentifier()
        try request.checkNames()
        let start = try records.record(RecordKeys.start(owner, metadata.localIdentifier))
        let found = try records.load(StoredCollaboration.self, at: RecordKeys.collaboration(collaboration))
        if let found, let start, start.value == collaboration.utf8, start.version == context.earlier {
            // A repetition tells the present state of what the first request has started.
            return .answer(try Answer(collaboration, found.value, isNew: true, sequence: start.version, context))
        }
        guard found == nil, try !records.hasSet(of: collaboration) else {
            guard context.earlier == nil else {
                throw ServiceError(.mutationConflict, "\(collaboration) has ended since, and was started again")
            }
            throw ServiceError(.collaborationExists, "\(collaboration) exists already")
        }
        guard start == nil else {
            throw ServiceError(
                .notPermitted,
                "\(owner) has started other content of that name: give another metadata.localIdentifier")
        }
        return try request.starting(
            as: collaboration, at: min(creationDate ?? context.now, context.now), context, records)
    }

    /// Throws what the request is refused with whatever is stored.
    package func checkFields() throws(ServiceError) {
        try checkIdentifier()
        try request.checkNames()
        try request.checkStart()
    }

    /// Throws `malformedRequest` unless the identifier is one that a start could have chosen. In others a link could
    /// lead elsewhere: those with a slash or dots.
    private func checkIdentifier() throws(ServiceError) {
        guard collaboration.utf8.allSatisfy(Base64URL.isDigit) else {
            throw ServiceError(
                .malformedRequest, "collaboration is not an identifier that prepare gives: letters, digits, - and _")
        }
    }

    /// The same start, under any identifier.
    private var request: PrepareCollaboration {
        PrepareCollaboration(
            owner: owner, metadata: metadata, selectedOptions: selectedOptions, ownerName: ownerName,
            nonceWindowSeconds: nonceWindowSeconds)
    }
}
