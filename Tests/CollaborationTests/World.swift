import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// The rules over a storage in memory, with a clock that stands still until it is moved.
final class World {
    let storage = MemoryStorage()
    var now = Date(timeIntervalSince1970: 1_760_000_000)
    /// The clock that does not go back; `nil`: it is as the date.
    var durableTime: Date?
    var settings: CollaborationSettings
    var random = RandomSource.seeded(1)
    var sha256: @Sendable ([UInt8]) -> Digest = standIn

    init() {
        settings = CollaborationSettings()
        settings.linkBase = "https://decks.example/c"
    }

    var context: RuleContext {
        RuleContext(
            now: now, random: random, sha256: sha256, settings: settings, grants: TestAuthority(now: milliseconds))
    }

    var milliseconds: UInt64 { UInt64(max(0, (durableTime ?? now).timeIntervalSince1970 * 1000)) }

    /// What the rules decide about the request, after it has travelled as JSON.
    func decide<R: RuledRequest>(_ request: R) throws(ServiceError) -> Decision<R.Answer> {
        let travelled = try JSON.decodeStrictly(R.self, from: try JSON.encode(request))
        let decision = try travelled.decide(context, storage)
        check(decision, about: R.self)
        return decision
    }

    /// The decision on a query is never an edit, and only queries may wait.
    private func check<Answer>(_ decision: Decision<Answer>, about request: (some RuledRequest).Type) {
        switch decision {
        case .answer: return
        case .edit, .note: #expect(!request.isQuery, "\(request.name)")
        case .wait: #expect(request.isQuery, "\(request.name)")
        }
    }

    /// Decides the request, applies what was decided, and returns the answer after it has travelled as JSON. Requests
    /// that would wait are answered at once.
    @discardableResult
    func send<R: RuledRequest>(_ request: R) throws(ServiceError) -> R.Answer {
        let answer: [UInt8]
        let travelled = try JSON.decodeStrictly(R.self, from: try JSON.encode(request))
        let decision = try travelled.decideEncoded(context, storage)
        check(decision, about: R.self)
        switch decision {
        case .answer(let known): answer = known
        case .edit(let edit, _, let following): answer = following(try storage.apply(edit))
        case .note(let edit, let following):
            #expect(edit.isEmpty, "\(R.name)")
            answer = following(try storage.apply(edit).sequence)
        case .wait(_, _, let empty): answer = empty
        }
        return try JSON.decode(R.Answer.self, from: answer)
    }

    /// The code of the error that the request is answered with; `nil` when there is none. An error has changed nothing.
    func code(of request: some RuledRequest) -> ServiceError.Code? {
        error(of: request)?.code
    }

    /// The error that the request is answered with.
    func error(of request: some RuledRequest) -> ServiceError? {
        let (before, sequence) = (storage.records, storage.sequence)
        let error = thrownServiceError { try send(request) }
        if error != nil { #expect(storage.records == before && storage.sequence == sequence) }
        return error
    }

    /// The edit that the rules decide on; `nil` when they decide on something else.
    func edit(_ request: some RuledRequest) throws -> Edit? {
        switch try decide(request) {
        case .edit(let edit, _, _), .note(let edit, _): return edit
        case .answer, .wait: return nil
        }
    }

    /// The topics that the request changes.
    func topics(_ request: some RuledRequest) throws -> Set<Topic> {
        guard case .edit(_, let topics, _) = try decide(request) else { return [] }
        return Set(topics)
    }

    /// Whether an edit that was decided earlier is stale by now.
    func isStale(_ edit: Edit?) throws -> Bool {
        let edit = try #require(edit)
        return thrownServiceError { _ = try storage.apply(edit) }?.code == .staleEdit
    }

    // MARK: Things that many tests begin with

    /// A collaboration of the account "ana", who takes part as person 1. Participants may write unless options say
    /// otherwise.
    func start(
        _ local: String = "deck", title: String? = "Deck", options: ShareOptions? = nil,
        defaultPermission: Permission? = .readWrite
    ) throws -> CollaborationIdentifier {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: local))
        metadata.title = title
        metadata.defaultShareOptions = options
        metadata.defaultPermission = defaultPermission
        let request = PrepareCollaboration(
            owner: try account("ana"), metadata: metadata, ownerIdentity: person(1), ownerName: "Ana")
        return try send(request).collaborationIdentifier
    }

    /// Adds participants, who join.
    func admit(
        _ people: [PersonIdentity], to collaboration: CollaborationIdentifier, permission: Permission? = nil
    ) throws {
        try send(
            AddParticipants(people.map { NewParticipant($0, permission: permission) }, to: collaboration))
        for person in people { try join(person, in: collaboration) }
    }

    /// Notes that the person's proof was granted.
    func join(_ person: PersonIdentity, in collaboration: CollaborationIdentifier) throws {
        let access = try #require(try storage.access(of: person, in: collaboration))
        _ = try storage.apply(Joining.edit(of: person, in: collaboration, access, milliseconds: milliseconds))
    }

    /// A grant as the service gives it to the person now.
    func grant(
        _ person: PersonIdentity, in collaboration: CollaborationIdentifier, isForged: Bool = false
    ) throws -> AccessGrant {
        let access = try #require(try storage.access(of: person, in: collaboration))
        let claim = GrantClaim(
            permission: access.permission, role: access.role, expiry: milliseconds + 300_000,
            sequence: storage.sequence, collaboration: Fingerprint(standIn(collaboration.utf8)),
            deviceKey: Fingerprint(standIn([9])), rootHash: person.rootHash)
        var bytes: [UInt8] = []
        claim.append(to: &bytes)
        bytes += [UInt8](repeating: isForged ? 0xff : 0x11, count: GrantLayout.tagBytes)
        return try #require(AccessGrant(bytes: bytes))
    }

    /// Posts events as the person.
    @discardableResult
    func post(
        _ events: [HighlightEvent], by person: PersonIdentity, on collaboration: CollaborationIdentifier
    ) throws -> ChangeReceipt {
        try send(PostNotices(events, on: collaboration, by: try grant(person, in: collaboration)))
    }

    /// All participants of a collaboration, by their identities.
    func participants(
        of collaboration: CollaborationIdentifier, includesRemoved: Bool = false
    ) throws -> [PersonIdentity: Participant] {
        let answer = try send(ListParticipants(of: collaboration, includesRemoved: includesRemoved))
        #expect(!answer.hasMore)
        return Dictionary(uniqueKeysWithValues: answer.participants.map { ($0.identity, $0) })
    }
}

/// Recognizes a grant by the last bytes: a tag of 0xff is forged, every other one is genuine.
struct TestAuthority: GrantAuthority {
    let now: UInt64

    func isGenuine(_ grant: AccessGrant) -> Bool {
        grant.bytes.suffix(GrantLayout.tagBytes).contains { $0 != 0xff }
    }
}

/// Runs `body` `count` times, each time with other random numbers and a comment that says how to repeat them.
func withSeeds(_ count: Int, _ body: (_ generator: inout SeededGenerator, _ context: Comment) throws -> Void) rethrows {
    for iteration in 0..<count {
        var generator = SeededGenerator(seed: runSeed &+ UInt64(iteration))
        try body(&generator, "seed \(runSeed), iteration \(iteration)")
    }
}

/// Stands for SHA-256: 32 bytes that differ where texts do.
@Sendable func standIn(_ bytes: [UInt8]) -> Digest {
    var digest: [UInt8] = []
    for lane in 0..<4 {
        var hash = 0xcbf2_9ce4_8422_2325 &+ UInt64(lane)
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        var generator = SeededGenerator(seed: hash)
        digest += generator.bytes(8)
    }
    return Digest(digest) ?? .zero
}

/// The identity whose root hash is this byte 32 times.
func person(_ number: UInt8) -> PersonIdentity {
    PersonIdentity(rootHash: Digest([UInt8](repeating: number, count: Digest.byteCount)) ?? .zero)
}

func account(_ name: String) throws -> Account { try #require(Account(name)) }

func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

/// What comes back when the value has travelled as JSON.
func travelled<Value: Codable>(_ value: Value) throws -> Value {
    try JSON.decodeStrictly(Value.self, from: try JSON.encode(value))
}

extension ShareOptions {
    /// A picker between editing and viewing, and switches of which one requires another.
    static var deck: ShareOptions {
        ShareOptions(optionsGroups: [
            OptionsPickerGroup(
                identifier: "access", title: "Permission",
                options: [
                    CollaborationOption(title: "Can make changes", identifier: "edit", effects: [.readWrite]),
                    CollaborationOption(title: "View only", identifier: "view", effects: [.readOnly]),
                ]),
            OptionsGroup(
                identifier: "extras", title: "Extras",
                options: [
                    CollaborationOption(title: "Allow comments", identifier: "comments"),
                    CollaborationOption(
                        title: "Allow reactions", identifier: "reactions", requiredOptionsIdentifiers: ["comments"]),
                ]),
        ])
    }
}
