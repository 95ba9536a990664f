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
        guard !events.isEmpty else { return .unchanged }
        let found = try records.collaboration(collaboration)
        let options = found.value.shareOptions
        for event in events {
            if let effect = event.effect, options.allows(effect) == false {
                throw ServiceError(.notPermitted, "the share options don't allow to \(effect.rawValue)")
            }
            guard access.permission == .readWrite || !event.changesContent else {
                throw ServiceError(.notPermitted, "a participant who may only read can't report changes of the content")
            }
            if let reader = event.onlyReader { _ = try records.participant(reader, in: collaboration) }
        }
        var edit = Edit(collaboration)
        edit.records = access.expectations(of: author, in: collaboration)
        if events.contains(where: { $0.effect.map { options.allows($0) != nil } ?? false }) {
            // The edit is stale when the options were changed at the same time.
            edit.records.append(
                .checking(RecordKeys.collaboration(collaboration), expecting: .version(found.version)))
        }
        let title = found.value.title
        var names: [PersonIdentity: String?] = [:]
        let post = try StoredPost.bytes(
            of: events, by: author, on: collaboration, title: title, at: context.now
        ) { person throws(ServiceError) in
            if let known = names[person] { return known }
            let key = RecordKeys.participant(collaboration, person)
            let name = try records.load(StoredParticipant.self, at: key)?.value.displayName
            names[person] = .some(name)
            return name
        }
        edit.records.append(RecordEdit(RecordKeys.notices(collaboration), isSequenced: true, value: post))
        if let forgotten = try forgotten(context, records) { edit.removedRanges = [forgotten] }
        let count = events.count
        return .change(edit, topics: [.collaboration(collaboration)], count: count)
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
        switch self {
        case .change(.comment): .comment
        case .mention: .mention
        case .change(.edit), .membership, .persistence: nil
        }
    }

    /// Whether the event reports something that needs the permission to write.
    fileprivate var changesContent: Bool {
        switch self {
        case .change(.edit), .persistence: true
        case .change(.comment), .membership, .mention: false
        }
    }
}
