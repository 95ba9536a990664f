@testable import Collaboration
import Core
import Foundation
import Hashing
import ServiceTestSupport
@testable import RootgateClient

/// The collaboration layer as PROTOCOL.md has it, in dictionaries and arrays: what every answer must be.
///
/// It has none of the layer's rules, keys or records. From the layer's model it takes the values that travel, as plain
/// data; what follows from them (permissions, summaries, sentences) is worked out here once more.
struct CollaborationModel: Sendable {
    struct Start: Hashable, Sendable {
        let owner: Account
        let local: LocalCollaborationIdentifier
    }

    struct Member: Sendable {
        var name: String?
        var role: ParticipantRole
        var permission: Permission?
        var invitedAt: Date
        var joinedAt: Date?
        var removedAt: Date?
        var account: Account?
        /// The account that the person's removal concerned.
        var formerAccount: Account?
        /// The account that accepted the invitation by which the person was added.
        var accepter: Account?
        /// By whose grants the person was added and removed.
        var addedBy: PersonIdentity?
        var removedBy: PersonIdentity?
        /// The sequence of the last change of the person's role or permission.
        var since: UInt64
        /// The sequence up to which the person has cleared notices.
        var cleared: UInt64 = 0
    }

    struct Post: Sendable {
        let sequence: UInt64
        let author: PersonIdentity
        let date: Date
        /// Each event with its sentences: for the person whom it names, and for everybody else.
        let events: [(event: HighlightEvent, toNamed: Told, toOthers: Told)]
    }

    /// A sentence in both languages.
    struct Told: Sendable {
        let english: String
        let german: String

        /// The one for a reader of that language.
        func text(_ language: String?) -> String {
            language.map { $0.lowercased().split(separator: "-").first == "de" } ?? false ? german : english
        }
    }

    struct Invite: Sendable {
        var role: ParticipantRole
        var permission: Permission?
        var createdAt: Date
        var expiresAt: Date?
        var isRevoked = false
        var acceptedBy: Account?
        var acceptedAt: Date?
        var identity: PersonIdentity?
        var completedAt: Date?
        var inviter: Inviter?
    }

    struct Shared: Sendable {
        let identifier: CollaborationIdentifier
        var start: Start
        var ownerIdentity: PersonIdentity?
        var title: String?
        var options: ShareOptions
        var defaultPermission: Permission?
        let createdAt: Date
        var initiatorHandle: String?
        /// The initiator's name, as the start gave it.
        var initiatorName: String?
        /// The account that has started it, if another one owns it.
        var initiator: Account?
        var customItems: [CustomItem] = []
        var manageButtonTitle: String?
        /// The sequence of the last change of the default permission.
        var since: UInt64
        /// The sequence of its start, or of the change by which its owner's account got it.
        var began: UInt64 = 0
        /// Everybody who was ever a participant.
        var members: [PersonIdentity: Member] = [:]
        /// Root hashes that were added without the layer.
        var strangers: Set<Digest> = []
        var posts: [Post] = []
        var invites: [InvitationToken: Invite] = [:]
        /// The accounts that got its link since its start.
        var shelves: Set<Account> = []
    }

    struct Share: Sendable {
        let url: URL
        let title: String?
        let subtitle: String?
        let thumbnail: Thumbnail?
        let app: String
        let sharer: Sharer
        let conversation: Conversation
        let date: Date
        var isPinned: Bool
        let knowsSomebody: Bool

        /// Whether a group has somebody whom the person knows.
        var counts: Bool { !conversation.isGroup || knowsSomebody }
    }

    struct Signals: Sendable {
        var isHidden = false
        /// In 65,536ths, as they were at the time `last`; times in milliseconds.
        var interest = 0
        var shown = 0
        var last = 0
        var lastUse = 0

        /// Takes from the weights what time takes: half in each week, and of the next half as much as has passed.
        mutating func age(until now: Int) {
            let week = 604_800_000
            func rest(_ weight: Int) -> Int {
                let (weeks, time) = ((now - last) / week, (now - last) % week)
                let halved = (0..<min(weeks, 64)).reduce(weight) { half, _ in half / 2 }
                return halved - halved * time / (2 * week)
            }
            (interest, shown, last) = (rest(interest), rest(shown), now)
        }
    }

    struct PersonalShelf: Sendable {
        /// By link, then by conversation.
        var shares: [String: [String: Share]] = [:]
        var signals: [String: Signals] = [:]
        var everything: Bool?
        var apps: [String: Bool] = [:]
        var conversations: [String: Bool] = [:]
        var version: UInt64 = 0
    }

    /// A grant that was given.
    struct HeldGrant: Sendable {
        let grant: AccessGrant
        let collaboration: CollaborationIdentifier
        let person: PersonIdentity
        let deviceKey: [UInt8]
        let permission: Permission
        let role: ParticipantRole
        let sequence: UInt64
        let age: Int
    }

    struct Challenge: Sendable {
        let life: Int
        let age: Int
        var isSpent = false
    }

    /// What the test moves: the calendar, the service's clock in leaps, and the service's lives.
    var now: Date
    /// The time by which invitations expire. Only the leaps move it far.
    var expiryTime: Date
    var age = 0
    var life = 0

    var sequence: UInt64 = 0
    /// The number of changes, and the sequence of the next ones when it isn't the following number.
    var commits = 0
    var told: UInt64?
    /// Whether the present request was carried out before, with the sequence `told`.
    var isRepeating = false
    /// Whether the identifier of the present request was used before for another content.
    var isConflict = false

    var collaborations: [CollaborationIdentifier: Shared] = [:]
    var starts: [Start: CollaborationIdentifier] = [:]
    /// All collaborations that ever existed, in their order.
    var history: [(identifier: CollaborationIdentifier, start: Start)] = []
    var places: [InvitationToken: CollaborationIdentifier] = [:]
    var tokens: [InvitationToken] = []
    var accepted: [Account: Set<CollaborationIdentifier>] = [:]
    /// As whom, if it was said.
    var acceptedAs: [Account: [CollaborationIdentifier: Set<PersonIdentity>]] = [:]
    var shelves: [Account: PersonalShelf] = [:]
    /// By account, then by conversation and app, as far as answers have told them.
    var handles: [Account: [String: ConversationHandle]] = [:]
    var grants: [HeldGrant] = []
    var challenges: [[UInt8]: Challenge] = [:]

    init(now: Date) {
        self.now = now
        expiryTime = now
    }

    static let linkBase = TestService.linkBase
    static let noticeSeconds = 30.0 * 24 * 3600

    /// The sequence of a change that is made now.
    mutating func commit() -> UInt64 {
        commits += 1
        if let told { return told }
        sequence += 1
        return sequence
    }

    // MARK: Refusals

    func refusal(_ code: ServiceError.Code, _ detail: Int = 0) -> ServiceError {
        ServiceError(code, detail: UInt32(detail), "the model refuses")
    }

    func checkText(_ text: String?, _ most: Int = 512) throws(ServiceError) {
        guard let text else { return }
        if text.utf8.count > most { throw refusal(.limitExceeded, most) }
        let controls =
            [
                0...0x1f, 0x7f...0x9f, 0x2028...0x2029, 0x202a...0x202e, 0x2066...0x2069,
            ] as [ClosedRange<UInt32>]
        if text.unicodeScalars.contains(where: { scalar in controls.contains { $0.contains(scalar.value) } }) {
            throw refusal(.malformedRequest)
        }
    }

    func checkRange(_ value: Int?, _ most: Int) throws(ServiceError) {
        if let value, value < 0 { throw refusal(.malformedRequest) }
        if let value, value > most { throw refusal(.limitExceeded, most) }
    }

    /// Language tags are of letters, digits and hyphens in this test.
    func checkLanguage(_ language: String?) throws(ServiceError) {
        guard let language else { return }
        try checkText(language, 35)
        if language.contains("_") || language == "" { throw refusal(.malformedRequest) }
    }

    /// Links have a host in this test whenever their scheme is that of the web.
    func checkLink(_ link: URL?) throws(ServiceError) {
        guard let link else { return }
        try checkText(link.absoluteString, 2048)
        guard ["http", "https"].contains(link.scheme?.lowercased()) else { throw refusal(.malformedRequest) }
    }

    /// Whether a link leads to a collaboration. It may have something behind the identifier.
    static func leads(_ link: URL, to collaboration: CollaborationIdentifier) -> Bool {
        let text = String(link.absoluteString.prefix { $0 != "?" && $0 != "#" })
            .replacingOccurrences(of: "HTTPS://EXAMPLE.COM:443/", with: "https://example.com/")
        let own = CollaborationModel.link(collaboration).absoluteString
        return text == own || text.hasPrefix(own + "/")
    }

    func checkName(_ name: String) throws(ServiceError) {
        guard (1...128).contains(name.utf8.count) else { throw refusal(.malformedRequest) }
        try checkText(name)
    }

    func checkCount(_ count: Int, _ most: Int) throws(ServiceError) {
        if count > most { throw refusal(.limitExceeded, most) }
    }

    func checkPage(_ limit: Int, _ most: Int) throws(ServiceError) {
        if limit < 1 { throw refusal(.malformedRequest) }
        try checkCount(limit, most)
    }

    func checkSequence(_ wanted: UInt64) throws(ServiceError) {
        if wanted > sequence { throw refusal(.behindSequence, Int(wanted - sequence)) }
    }

    // MARK: Looking up

    func shared(_ collaboration: CollaborationIdentifier) throws(ServiceError) -> Shared {
        guard let shared = collaborations[collaboration] else { throw refusal(.unknownCollaboration) }
        return shared
    }

    /// A participant who was not removed, of an existing collaboration.
    func member(
        _ person: PersonIdentity, of collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Member {
        guard let member = try shared(collaboration).members[person], member.removedAt == nil else {
            throw refusal(.unknownParticipant)
        }
        return member
    }

    static func link(_ collaboration: CollaborationIdentifier) -> URL {
        // Identifiers that a service chooses need no escapes.
        URL(string: "\(linkBase)/\(collaboration)")!
    }

    /// Where an account takes part, and as whom.
    func links(of account: Account) -> [(collaboration: CollaborationIdentifier, person: PersonIdentity)] {
        collaborations.values.flatMap { shared in
            shared.members.filter { $0.value.account == account }.map { (shared.identifier, $0.key) }
        }
    }

    // MARK: Grants

    /// The status of a grant that is shown for `collaboration`.
    func status(
        of held: HeldGrant, in collaboration: CollaborationIdentifier, deviceKey: [UInt8]? = nil,
        isForged: Bool = false
    ) -> GrantStatus {
        if isForged { return .forged }
        if age - held.age > 1 { return .expired }
        if held.collaboration != collaboration { return .otherCollaboration }
        if let deviceKey, deviceKey != held.deviceKey { return .otherDevice }
        guard let shared = collaborations[collaboration], let member = shared.members[held.person],
            member.removedAt == nil
        else { return .revoked }
        let since = member.permission == nil ? max(member.since, shared.since) : member.since
        return since > held.sequence ? .revoked : .valid
    }

    /// Who shows a grant, in a request that needs one.
    func bearer(
        of grant: AccessGrant, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Bearer {
        guard let held = grants.last(where: { $0.grant == grant }) else {
            throw refusal(.grantRefused, Int(GrantStatus.forged.rawValue))
        }
        let status = status(of: held, in: collaboration)
        guard status == .valid else { throw refusal(.grantRefused, Int(status.rawValue)) }
        return Bearer(person: held.person, permission: held.permission, role: held.role)
    }

    /// Who shows a grant.
    struct Bearer {
        let person: PersonIdentity
        let permission: Permission
        let role: ParticipantRole
    }

    /// Who manages a collaboration; `nil`: the backend, which may do everything.
    func manager(
        _ grant: AccessGrant?, _ operation: ManageOperation?, in collaboration: CollaborationIdentifier
    ) throws(ServiceError) -> Bearer? {
        guard let grant else { return nil }
        let bearer = try bearer(of: grant, in: collaboration)
        if let operation, !operations(of: bearer.role, in: try shared(collaboration)).contains(operation) {
            throw refusal(.notPermitted)
        }
        return bearer
    }

    func operations(of role: ParticipantRole, in shared: Shared) -> [ManageOperation] {
        switch role {
        case .owner: [.changeOptions, .addParticipants, .changeParticipants, .removeParticipants, .stopSharing]
        case .administrator: [.changeOptions, .addParticipants, .changeParticipants, .removeParticipants]
        case .member: OptionsModel.allows(.addParticipants, shared.options) == true ? [.addParticipants] : []
        }
    }

    func checkGiving(
        _ bearer: Bearer?, role: ParticipantRole?, permission: Permission?
    ) throws(ServiceError) {
        guard let bearer else { return }
        if role == .administrator || role == .owner, bearer.role == .member { throw refusal(.notPermitted) }
        if permission == .readWrite, bearer.permission == .readOnly { throw refusal(.notPermitted) }
    }

    // MARK: Notices

    /// The page of a feed that begins behind `after`, and where it ends when there is more.
    func notices(
        _ feed: Feed, after: UInt64, limit: Int, language: String? = nil, ignoresClearing: Bool = false
    ) throws(ServiceError) -> (notices: [Notice], end: UInt64?) {
        var readers: [(collaboration: CollaborationIdentifier, person: PersonIdentity?)] = []
        switch feed {
        case .collaboration(let collaboration):
            _ = try shared(collaboration)
            readers = [(collaboration, nil)]
        case .participant(let person, let collaboration):
            _ = try member(person, of: collaboration)
            readers = [(collaboration, person)]
        case .account(let account):
            readers = links(of: account).map { ($0.collaboration, $0.person) }
        }
        // Each post once, with those who read it.
        typealias Entry = (post: Post, collaboration: CollaborationIdentifier, readers: Set<PersonIdentity>)
        var posts: [UInt64: Entry] = [:]
        for (collaboration, person) in readers {
            let shared = try shared(collaboration)
            var start = after
            // Clearing concerns the participant's own feed.
            if case .participant(let person, _) = feed, !ignoresClearing {
                start = max(after, shared.members[person]?.cleared ?? 0)
            }
            for post in shared.posts where post.sequence > start {
                posts[post.sequence, default: (post, collaboration, [])].readers.formUnion(person.map { [$0] } ?? [])
            }
        }
        var notices: [Notice] = []
        var last: UInt64?
        for (index, entry) in posts.values.sorted(by: { $0.post.sequence < $1.post.sequence }).enumerated() {
            // A page ends behind the post that brings it to `limit` notices, and reads at most `limit` posts.
            if index >= limit || notices.count >= limit { return (notices, last) }
            last = entry.post.sequence
            guard entry.post.date >= now.addingTimeInterval(-CollaborationModel.noticeSeconds) else { continue }
            for (place, (event, toNamed, toOthers)) in entry.post.events.enumerated() {
                var isNamed = false
                switch event.kind {
                case .mention(let person):
                    guard entry.readers.contains(person) else { continue }
                    isNamed = true
                // Who joins or leaves is told of as the author.
                case .membership(_, let person?):
                    isNamed = entry.readers.contains(person) && person != entry.post.author
                case .membership, .change, .persistence: break
                }
                notices.append(
                    Notice(
                        collaboration: entry.collaboration, sequence: entry.post.sequence, place: place,
                        date: entry.post.date, author: entry.post.author, event: event,
                        sentence: (isNamed ? toNamed : toOthers).text(language)))
            }
        }
        return (notices, nil)
    }

    /// What is said of an event now, to the person whom it names or to somebody else.
    func told(_ event: HighlightEvent, by author: PersonIdentity, in shared: Shared, toNamed: Bool) -> Told {
        func name(_ person: PersonIdentity) -> String? { shared.members[person]?.name.flatMap { $0 == "" ? nil : $0 } }
        let known = event.person.flatMap { name($0) }
        let (whom, wen) = toNamed ? ("you", "dich") : (known ?? "somebody", known ?? "jemanden")
        let (who, wer) = (name(author) ?? "Somebody", name(author) ?? "Jemand")
        let title = shared.title == "" ? nil : shared.title
        let what = title.map { "“\($0)”" } ?? "the shared content"
        let was = title.map { "„\($0)“" } ?? "den geteilten Inhalt"
        let worin = title.map { "in „\($0)“" } ?? "im geteilten Inhalt"
        let atStart = title.map { "In „\($0)“" } ?? "Im geteilten Inhalt"
        switch event.kind {
        case .change(trigger: .edit):
            return Told(english: "\(who) edited \(what)", german: "\(wer) hat \(was) bearbeitet")
        case .change(trigger: .comment):
            return Told(english: "\(who) commented in \(what)", german: "\(wer) hat \(worin) kommentiert")
        case .membership(trigger: .addedCollaborator, nil):
            return Told(english: "There is a new participant in \(what)", german: "\(atStart) ist jemand neu dabei")
        case .membership(trigger: .removedCollaborator, nil):
            return Told(
                english: "A participant no longer takes part in \(what)",
                german: "\(atStart) ist jemand nicht mehr dabei")
        case .membership(trigger: .addedCollaborator, let person) where person == author:
            let wem = title.map { "„\($0)“" } ?? "dem geteilten Inhalt"
            return Told(english: "\(who) joined \(what)", german: "\(wer) ist \(wem) beigetreten")
        case .membership(trigger: .removedCollaborator, let person) where person == author:
            return Told(english: "\(who) left \(what)", german: "\(wer) hat \(was) verlassen")
        case .membership(trigger: .addedCollaborator, _):
            let wozu = title.map { "zu „\($0)“" } ?? "zum geteilten Inhalt"
            return Told(english: "\(who) added \(whom) to \(what)", german: "\(wer) hat \(wen) \(wozu) hinzugefügt")
        case .membership(trigger: .removedCollaborator, _):
            let woraus = title.map { "aus „\($0)“" } ?? "aus dem geteilten Inhalt"
            return Told(
                english: "\(who) removed \(whom) from \(what)", german: "\(wer) hat \(wen) \(woraus) entfernt")
        case .mention:
            return Told(
                english: "\(who) mentioned \(whom) in \(what)", german: "\(wer) hat \(wen) \(worin) erwähnt")
        case .persistence(let trigger):
            let participle =
                switch trigger {
                case .created: "erstellt"
                case .deleted: "gelöscht"
                case .renamed: "umbenannt"
                case .moved: "verschoben"
                }
            return Told(english: "\(who) \(trigger.rawValue) \(what)", german: "\(wer) hat \(was) \(participle)")
        }
    }

    // MARK: Ending

    /// Ends a collaboration, with everything that names it.
    mutating func end(_ collaboration: CollaborationIdentifier) -> ChangeReceipt {
        let sequence = commit()
        let ended = collaborations.removeValue(forKey: collaboration)
        if let ended { starts[ended.start] = nil }
        places = places.filter { $0.value != collaboration }
        for account in accepted.keys { accepted[account]?.remove(collaboration) }
        for account in acceptedAs.keys { acceptedAs[account]?[collaboration] = nil }
        // Its link leaves the shelves.
        let link = CollaborationModel.link(collaboration).absoluteString
        for account in ended?.shelves ?? [] where shelves[account]?.shares[link] != nil {
            shelves[account]?.version = sequence
        }
        return ChangeReceipt(sequence: sequence, changed: 1)
    }
}

// MARK: - Share options

/// What share options come to.
enum OptionsModel {
    static func options(_ options: ShareOptions) -> [CollaborationOption] {
        options.groups.flatMap { group in
            switch group {
            case .switches(let switches): switches.options
            case .picker(let picker): picker.options
            }
        }
    }

    static func permission(_ options: ShareOptions) -> Permission? {
        let effects = Set(self.options(options).filter(\.isSelected).flatMap(\.effects))
        return effects.contains(.readOnly) ? .readOnly : effects.contains(.readWrite) ? .readWrite : nil
    }

    static func allows(_ effect: OptionEffect, _ options: ShareOptions) -> Bool? {
        let concerned = self.options(options).filter { $0.effects.contains(effect) }
        return concerned.isEmpty ? nil : concerned.contains { $0.isSelected }
    }

    static func selected(_ options: ShareOptions) -> [String] {
        self.options(options).filter(\.isSelected).map(\.identifier)
    }

    static func summary(_ options: ShareOptions, _ permission: Permission) -> String {
        if let given = options.givenSummary, given != "" { return given }
        var titles: [String] = []
        for case .picker(let picker) in options.groups {
            for option in picker.options where option.isSelected && option.title != "" { titles.append(option.title) }
        }
        let isOverruled = options.groups.contains { group in
            guard case .picker(let picker) = group else { return false }
            return picker.options.contains { option in
                option.isSelected
                    && option.effects.contains { $0.permission != nil && $0.permission != permission }
            }
        }
        if !titles.isEmpty, !isOverruled { return titles.joined(separator: ", ") }
        return permission == .readOnly
            ? "Only invited people can view" : "Only invited people can make changes"
    }

    /// The options with exactly those selected; `nil` when one is unknown.
    static func selecting(_ identifiers: [String], of options: ShareOptions) -> ShareOptions? {
        let all = self.options(options)
        guard identifiers.allSatisfy({ wanted in all.contains { $0.identifier == wanted } }) else { return nil }
        var chosen = options
        if Set(selected(options)) != Set(identifiers) { chosen.givenSummary = nil }
        chosen.groups = options.groups.map { group in
            func pick(_ options: [CollaborationOption]) -> [CollaborationOption] {
                options.map { option in
                    var option = option
                    option.isSelected = identifiers.contains(option.identifier)
                    return option
                }
            }
            switch group {
            case .switches(var switches):
                switches.options = pick(switches.options)
                return .switches(switches)
            case .picker(var picker):
                picker.options = pick(picker.options)
                return .picker(picker)
            }
        }
        return chosen
    }

    /// Why the choices don't go together.
    static func refusal(of options: ShareOptions) -> ServiceError.Code? {
        let all = self.options(options)
        let names = all.map(\.identifier)
        if Set(names).count != names.count { return .optionConflict }
        let groups = options.groups.map(\.content.identifier)
        if Set(groups).count != groups.count { return .optionConflict }
        for case .picker(let picker) in options.groups where picker.options.filter(\.isSelected).count != 1 {
            return .optionConflict
        }
        for option in all {
            if option.requiredOptionsIdentifiers.contains(where: { !names.contains($0) }) { return .unknownOption }
            let isLacking = option.requiredOptionsIdentifiers.contains { wanted in
                all.contains { $0.identifier == wanted && !$0.isSelected }
            }
            if option.isSelected, isLacking { return .optionRequired }
        }
        return nil
    }
}

extension CollaborationModel.Shared {
    /// What participants without a permission of their own may do.
    var permission: Permission { OptionsModel.permission(options) ?? defaultPermission ?? .readOnly }

    var highlight: CollaborationHighlight {
        CollaborationHighlight(
            collaborationIdentifier: identifier, title: title, creationDate: createdAt,
            url: CollaborationModel.link(identifier), summary: OptionsModel.summary(options, permission),
            initiatorHandle: initiatorHandle, initiatorName: initiatorName)
    }

    /// The highlight as the owner's account lists it.
    var ownersHighlight: CollaborationHighlight {
        CollaborationHighlight(
            collaborationIdentifier: identifier, title: title, creationDate: createdAt,
            url: CollaborationModel.link(identifier), summary: OptionsModel.summary(options, permission),
            initiatorHandle: initiatorHandle, initiatorName: initiatorName, localIdentifier: start.local)
    }

    /// The set that the service looks in.
    var roots: Set<Digest> {
        strangers.union(members.filter { $0.value.removedAt == nil }.keys.map(\.rootHash))
    }

    /// All members, in the order of their root hashes.
    var participants: [Participant] {
        members.sorted { $0.key.rootHash < $1.key.rootHash }.map { person, member in
            Participant(
                identity: person, displayName: member.name, role: member.role,
                permission: member.permission ?? permission,
                followsShareOptions: member.permission == nil,
                state: member.removedAt != nil ? .removed : member.joinedAt != nil ? .joined : .invited,
                invitedAt: member.invitedAt, joinedAt: member.joinedAt, removedAt: member.removedAt,
                account: member.removedAt == nil ? member.account : member.formerAccount)
        }
    }

    /// Whether the person who came in by the invitation takes part by it still: a removal ends the acceptance.
    func takesPart(by invite: CollaborationModel.Invite) -> Bool {
        guard let person = invite.identity, let member = members[person] else { return false }
        return member.removedAt == nil && member.accepter == invite.acceptedBy && roots.contains(person.rootHash)
    }

    mutating func letIn(
        _ participant: NewParticipant, at date: Date, _ sequence: UInt64, by adder: PersonIdentity? = nil
    ) {
        strangers.remove(participant.identity.rootHash)
        members[participant.identity] = CollaborationModel.Member(
            name: participant.displayName, role: participant.role ?? .member, permission: participant.permission,
            invitedAt: date, formerAccount: members[participant.identity]?.formerAccount, addedBy: adder,
            since: sequence)
    }
}

// MARK: - Shelves

extension CollaborationModel.PersonalShelf {
    /// One of the three levels has to be allowed, and none refused.
    func allows(app: String, conversation: String) -> Bool {
        let answers = [everything, apps[app], conversations[conversation]]
        return answers.contains(true) && !answers.contains(false)
    }

    /// Whether links that are shared in conversations to come would appear if the app were allowed, and don't now.
    func wouldGain(from app: String) -> Bool {
        var asked = self
        asked.apps[app] = true
        return asked.allows(app: app, conversation: "?") && !allows(app: app, conversation: "?")
    }
}

extension CollaborationModel {
    var milliseconds: Int { Int((now.timeIntervalSince1970 * 1000).rounded()) }

    /// Whether the link led to a collaboration that has ended.
    func isGone(_ link: String) -> Bool {
        history.contains { identifier, _ in
            collaborations[identifier] == nil && CollaborationModel.link(identifier).absoluteString == link
        }
    }

    /// The shares of a link that are on the shelf, newest first; with `app` those of that app. `withHidden`,
    /// `withGone`: as if the account had not removed it, and as if its collaboration had not ended.
    func visible(
        _ link: String, of account: Account, for app: String?, withHidden: Bool = false, withGone: Bool = false
    ) -> [Share] {
        guard let shelf = shelves[account], withHidden || shelf.signals[link]?.isHidden != true,
            withGone || !isGone(link)
        else { return [] }
        return (shelf.shares[link] ?? [:]).values.filter { share in
            guard share.counts, app == nil || share.app == app else { return false }
            return share.isPinned || shelf.allows(app: share.app, conversation: share.conversation.identifier)
        }.sorted { a, b in
            a.date != b.date ? a.date > b.date : a.conversation.identifier > b.conversation.identifier
        }
    }

    /// What speaks for suggesting an item.
    private func score(_ signals: Signals, isPinned: Bool, newest: Date) -> Int {
        var signals = signals
        let lastUse = signals.lastUse
        signals.age(until: milliseconds)
        guard signals.interest >= 65_536 else { return 0 }
        let isOld = now.timeIntervalSince(newest) > 30 * 86_400
        guard !isOld || milliseconds - lastUse <= 604_800_000 else { return 0 }
        return signals.interest + signals.shown + (isPinned ? 3 * 65_536 : 0)
    }

    /// The links that are on the shelf, in their order, and whether the first one is the suggestion.
    func ranking(of account: Account, for app: String?) -> (links: [String], hasSuggestion: Bool) {
        struct Item {
            let link: String
            let isPinned: Bool
            let newest: Date
            let score: Int
            let last: Int
        }
        var items: [Item] = []
        for link in (shelves[account]?.shares ?? [:]).keys {
            let visible = visible(link, of: account, for: app)
            guard let newest = visible.first else { continue }
            let isPinned = visible.contains(where: \.isPinned)
            let signals = shelves[account]?.signals[link] ?? Signals()
            items.append(
                Item(
                    link: link, isPinned: isPinned, newest: newest.date,
                    score: score(signals, isPinned: isPinned, newest: newest.date), last: signals.last))
        }
        items.sort { a, b in a.isPinned != b.isPinned ? a.isPinned : a.newest > b.newest }
        var best: Int?
        for (index, item) in items.enumerated() where item.score > 0 {
            guard let known = best.map({ items[$0] }) else {
                best = index
                continue
            }
            if (item.score, item.last) > (known.score, known.last) { best = index }
        }
        if let best { items.insert(items.remove(at: best), at: 0) }
        return (items.map(\.link), best != nil)
    }

    /// The item of a link as an app or the system's side sees it. `told`: the attributions in the service's answer,
    /// from which the model learns each handle once.
    mutating func highlight(
        _ link: String, of account: Account, for app: String?, isSuggested: Bool, told: [Attribution]?
    ) -> Highlight? {
        let visible = visible(link, of: account, for: app)
        guard let newest = visible.first else { return nil }
        var attributions: [Attribution] = []
        for (place, share) in visible.prefix(8).enumerated() {
            let fresh = told.flatMap { place < $0.count ? $0[place].handle : nil }
            let place = "\(share.conversation.identifier) \(share.app)"
            attributions.append(
                Attribution(
                    handle: handle(of: place, for: account, fresh), date: share.date, isPinned: share.isPinned,
                    sharer: app == nil ? share.sharer : nil,
                    conversation: app == nil ? share.conversation : nil))
        }
        var thumbnail: ThumbnailReference?
        switch newest.thumbnail {
        case .link(let url)?: thumbnail = .link(url)
        case .image(let bytes, let type)?:
            thumbnail = .stored(hash: SHA256.hash(bytes), type, byteCount: bytes.count)
        case nil: break
        }
        return Highlight(
            url: newest.url, title: newest.title, subtitle: newest.subtitle, thumbnail: thumbnail, app: newest.app,
            date: newest.date, isPinned: visible.contains(where: \.isPinned), isSuggested: isSuggested,
            attributions: attributions)
    }

    /// The handle of a conversation and an app: the one that is known, or the fresh one unless it stands for others.
    /// Zeros, which no handle is, when the service has told none.
    private mutating func handle(
        of conversation: String, for account: Account, _ fresh: ConversationHandle?
    ) -> ConversationHandle {
        if let known = handles[account]?[conversation] { return known }
        guard let fresh, !handles.values.contains(where: { $0.values.contains(fresh) }) else {
            return ConversationHandle(bytes: [UInt8](repeating: 0, count: 16))!
        }
        handles[account, default: [:]][conversation] = fresh
        return fresh
    }

    // MARK: Invitations

    static func name(of token: InvitationToken) -> [UInt8] { Array(SHA256.hash(token.bytes).bytes.prefix(16)) }

    static func identifier(of token: InvitationToken) -> String {
        name(of: token).map { String(format: "%02x", $0) }.joined()
    }

    func state(of invite: Invite) -> InvitationState {
        if invite.identity != nil { return .completed }
        if invite.isRevoked { return .revoked }
        if let end = invite.expiresAt, end <= expiryTime { return .expired }
        return invite.acceptedBy != nil ? .accepted : .pending
    }

    func invitation(
        _ token: InvitationToken, _ invite: Invite, _ collaboration: CollaborationIdentifier
    ) -> Invitation {
        Invitation(
            identifier: CollaborationModel.identifier(of: token), collaboration: collaboration, role: invite.role,
            permission: invite.permission, state: state(of: invite), createdAt: invite.createdAt,
            expiresAt: invite.expiresAt, acceptedBy: invite.acceptedBy, acceptedAt: invite.acceptedAt,
            identity: invite.identity,
            completedAt: invite.completedAt, inviter: invite.inviter)
    }
}
