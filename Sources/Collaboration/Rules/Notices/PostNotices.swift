public import Core
import Foundation

/// Posts events for the participants of a collaboration: all together, in this order.
public struct PostNotices: RuledRequest {
    public static let name = "postNotices"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// The grant of the participant who posts.
    public var grant: AccessGrant
    public var events: [HighlightEvent]

    public init(_ events: [HighlightEvent], on collaboration: CollaborationIdentifier, by grant: AccessGrant) {
        self.collaboration = collaboration
        self.grant = grant
        self.events = events
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkLimit(events.count, Limits.noticesPerPostMax, "notices")
        let (author, access) = try records.bearer(of: grant, in: collaboration, context)
        guard !events.isEmpty else {
            return .noted(collaboration, access.expectations(of: author, in: collaboration))
        }
        let found = try records.collaboration(collaboration)
        let options = found.value.shareOptions
        var edit = Edit(collaboration)
        edit.records = access.expectations(of: author, in: collaboration)
        var people: [PersonIdentity: StoredParticipant] = [:]
        people[author] = try records.participant(author, in: collaboration).value
        for (index, event) in events.enumerated() {
            if let effect = event.effect, options.allows(effect) == false {
                throw ServiceError(.notPermitted, "the share options don't allow to \(effect.rawValue)")
            }
            guard access.permission == .readWrite || !event.changesContent else {
                throw ServiceError(.notPermitted, "a participant who may only read can't report changes of the content")
            }
            try checkPlace(of: event, index, context)
            if let person = event.person, people[person] == nil {
                let key = RecordKeys.participant(collaboration, person)
                let known = try records.load(StoredParticipant.self, at: key)
                people[person] = known?.value
                // The edit is stale when the person was added, removed or renamed at the same time.
                edit.records.append(.checking(key, expecting: known.map { .version($0.version) } ?? .absent))
            }
            try checkPerson(
                of: event, by: author, people, may: ManageOperation.permitted(to: access.role, by: options), records)
        }
        if events.contains(where: { $0.effect.map { options.allows($0) != nil } ?? ($0.person != nil) }) {
            // The edit is stale when the options were changed at the same time.
            edit.records.append(
                .checking(RecordKeys.collaboration(collaboration), expecting: .version(found.version)))
        }
        let title = found.value.title
        let post = try StoredPost.bytes(of: events, by: author, on: collaboration, title: title, at: context.now) {
            people[$0]?.displayName
        }
        edit.records.append(RecordEdit(RecordKeys.notices(collaboration), isSequenced: true, value: post))
        if let forgotten = try forgotten(context, records) { edit.removedRanges = [forgotten] }
        let count = events.count
        return .change(edit, topics: [.collaboration(collaboration)], count: count)
    }

    /// Throws unless the event's link, if it has one, leads to the collaboration or deeper into it.
    private func checkPlace(of event: HighlightEvent, _ index: Int, _ context: RuleContext) throws(ServiceError) {
        guard let link = event.link else { return }
        let field = "events[\(index)].link"
        try checkLink(link, field)
        guard context.settings.collaboration(of: link) == collaboration else {
            throw ServiceError(
                .notPermitted, "\(field) does not lead to \(collaboration): a notice leads to its own collaboration")
        }
    }

    /// Throws unless what the event says of a person is so: who was added or is mentioned takes part, and who was
    /// removed took part and does no longer. The author may say that he leaves while he takes part. That the author has
    /// added or removed somebody is so when his grant has done it, or when the backend has done it and the author may
    /// manage this (`operations`).
    private func checkPerson(
        of event: HighlightEvent, by author: PersonIdentity, _ people: [PersonIdentity: StoredParticipant],
        may operations: [ManageOperation], _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        guard let person = event.person, person != author else { return }
        guard let known = people[person] else {
            throw ServiceError(.unknownParticipant, "\(person.rootHash) never took part in \(collaboration)")
        }
        if case .membership(.removedCollaborator, _) = event.kind {
            guard known.removedAt != nil else {
                throw ServiceError(
                    .notPermitted, "\(person.rootHash) takes part in \(collaboration): remove the person first")
            }
            guard known.removedBy.map({ $0 == author }) ?? operations.contains(.removeParticipants) else {
                throw ServiceError(.notPermitted, "the author has not removed \(person.rootHash)")
            }
            return
        }
        guard known.removedAt == nil else {
            throw ServiceError(.unknownParticipant, "\(person.rootHash) was removed from \(collaboration)")
        }
        guard try records.isInSet(person, of: collaboration) else {
            throw ServiceError(.unknownParticipant, "\(person.rootHash) is not in the set of \(collaboration)")
        }
        guard case .membership = event.kind else { return }
        guard known.role != .owner, known.addedBy.map({ $0 == author }) ?? operations.contains(.addParticipants) else {
            throw ServiceError(.notPermitted, "the author has not added \(person.rootHash)")
        }
    }

    /// At random in one of 32 posts: the range of posts to delete, which are all but the newest `noticeCount`.
    private func forgotten(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> RecordRange? {
        guard context.random.bytes(1)[0] < 8 else { return nil }
        var range = RecordRange.beginning(with: RecordKeys.notices(collaboration))
        var count = 0
        try records.visitRecords(in: range) { _, _ in
            count += 1
            return true
        }
        var surplus = count - context.settings.noticeCount
        guard surplus > 0 else { return nil }
        try records.visitRecords(in: range) { key, _ in
            surplus -= 1
            if surplus < 0 { range.end = Array(key) }
            return surplus >= 0
        }
        return range
    }
}

extension HighlightEvent {
    /// The effect of share options that can forbid the event; `nil` when none can.
    fileprivate var effect: OptionEffect? {
        switch kind {
        case .change(.comment): .comment
        case .mention: .mention
        case .change(.edit), .membership, .persistence: nil
        }
    }

    /// Whether the event reports something that needs the permission to write.
    fileprivate var changesContent: Bool {
        switch kind {
        case .change(.edit), .persistence: true
        case .change(.comment), .membership, .mention: false
        }
    }
}
