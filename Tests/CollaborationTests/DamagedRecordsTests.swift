@testable import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// What can't be read is not the same as what is not there.
@Suite("Records that can't be read")
struct DamagedRecordsTests {
    private let world = World()
    private let bo: Account
    private let link: URL

    init() throws {
        bo = try account("bo")
        link = try url("https://decks.example/1")
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
        try share("c")
    }

    private func share(_ conversation: String) throws {
        try world.send(
            RecordShare(
                url: link, app: "app", sharer: Sharer(name: "Ana"),
                conversation: Conversation(identifier: conversation), recipients: [ShareRecipient(bo)]))
    }

    /// Replaces the value of a record, which is there.
    private func damage(_ key: [UInt8], _ value: [UInt8] = [7]) throws {
        let known = try #require(world.storage.records[key])
        world.storage.keep(StoredRecord(key: key, version: known.version, value: value))
    }

    private var item: [UInt8] { ShelfKeys.item(link, world.context) }

    private func shareKey(_ conversation: String) -> [UInt8] {
        ShelfKeys(bo).share(item, ShelfKeys.short(conversation, world.context))
    }

    /// Requests that show the item, or do more with it.
    private var uses: [any RuledRequest] {
        [
            ReadShelf(of: bo, for: .everyApp), ReadAttribution(link, of: bo, for: .everyApp),
            ReadAttribution(link, of: bo, for: .app("app")), ReadThumbnail(.zero, of: link, on: bo, for: .everyApp),
            SignalHighlight(.viewed, link, of: bo, for: .everyApp), PinHighlight(link, of: bo, for: .everyApp),
        ]
    }

    private var attribution: ReadAttribution { ReadAttribution(link, of: bo, for: .everyApp) }

    @Test(
        "What was removed does not come back when the record of that is damaged, and it can be removed again",
        arguments: [[], [7], [2] + [UInt8](repeating: 0, count: 31)] as [[UInt8]], [true, false])
    func removals(value: [UInt8], isByApp: Bool) throws {
        try world.send(RemoveHighlight(link, of: bo, for: .everyApp))
        #expect(world.code(of: attribution) == .unknownHighlight)
        try damage(ShelfKeys(bo).signals(item), value)
        for request in uses { #expect(world.code(of: request) == .storageDamaged, "\(request)") }
        let again = RemoveHighlight(link, of: bo, for: isByApp ? .app("app") : .everyApp)
        #expect(try world.send(again).changed == 1)
        #expect(world.code(of: attribution) == .unknownHighlight)
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)).count == 0)
    }

    @Test("A pin is removed while the record of what was done with the item is damaged")
    func unpinning() throws {
        try world.send(PinHighlight(link, of: bo, for: .everyApp))
        try world.send(SignalHighlight(.viewed, link, of: bo, for: .everyApp))
        try damage(ShelfKeys(bo).signals(item))
        let unpin = PinHighlight(link, of: bo, for: .everyApp, isPinned: false)
        #expect(try world.send(unpin).receipt.changed == 1)
    }

    @Test("A damaged share does not count as none, and the others are unpinned and removed all the same")
    func shares() throws {
        try share("d")
        try world.send(PinHighlight(link, of: bo, for: .everyApp))
        try damage(shareKey("c"))
        for request in uses { #expect(world.code(of: request) == .storageDamaged, "\(request)") }
        #expect(try world.send(PinHighlight(link, of: bo, for: .everyApp, isPinned: false)).receipt.changed == 1)
        let removals: [any RuledRequest] = [
            PinHighlight(link, of: bo, for: .everyApp, isPinned: false), RemoveHighlight(link, of: bo, for: .everyApp),
        ]
        let other = try #require(world.storage.records[shareKey("d")])
        try damage(other.key)
        // Nothing tells whether there is something to remove.
        for request in removals { #expect(world.code(of: request) == .storageDamaged, "\(request)") }
        world.storage.keep(other)
        #expect(try world.send(RemoveHighlight(link, of: bo, for: .everyApp)).changed == 1)
        #expect(world.code(of: attribution) == .unknownHighlight)
    }

    @Test("A grant is not called revoked when a record that decides about it is damaged", arguments: [true, false])
    func grants(isOwn: Bool) throws {
        let deck = try world.start()
        try world.admit([person(2)], to: deck)
        let post = PostNotices([], on: deck, by: try world.grant(person(2), in: deck))
        #expect(world.code(of: post) == nil)
        try damage(isOwn ? OwnAccess.key(deck, person(2)) : DefaultPermission.key(deck))
        #expect(world.code(of: post) == .storageDamaged)
        #expect(try world.send(RemoveParticipants([person(2)], from: deck)).changed == 1)
    }

    @Test(
        "An identity whose link is damaged is nobody else's, and the link ends when somebody ends it",
        arguments: [[], [7], [0xff]] as [[UInt8]], [true, false])
    func links(value: [UInt8], isRemoved: Bool) throws {
        let deck = try world.start()
        try world.admit([person(2)], to: deck)
        try world.send(LinkAccount(bo, to: person(2), in: deck))
        let token = InvitationToken(bytes: [UInt8](repeating: 1, count: 16))
        try world.send(CreateInvitation(to: deck, token: token))
        let accept = AcceptInvitation(token, for: try account("cy"), identity: person(2))
        #expect(try world.send(accept).refusal == .conflict)
        let key = RecordKeys.link(deck, person(2))
        try damage(key, value)
        #expect(world.code(of: accept) == .storageDamaged)
        #expect(world.code(of: FindParticipants([person(2)], in: deck)) == .storageDamaged)
        if isRemoved {
            #expect(try world.send(RemoveParticipants([person(2)], from: deck)).changed == 1)
        } else {
            #expect(try world.send(LinkAccount(nil, to: person(2), in: deck)).changed == 1)
        }
        #expect(world.storage.records[key] == nil)
    }

    @Test("A start whose record is damaged is neither made anew nor called undone")
    func starts() throws {
        _ = try world.start()
        let (owner, local) = (try account("ana"), LocalCollaborationIdentifier(rawValue: "deck"))
        try damage(RecordKeys.start(owner, local))
        let prepare = PrepareCollaboration(owner: owner, metadata: CollaborationMetadata(localIdentifier: local))
        #expect(world.code(of: prepare) == .storageDamaged)
        #expect(world.code(of: AbandonCollaboration(owner: owner, localIdentifier: local)) == .storageDamaged)
    }

    @Test("An identity whose acceptance is damaged is not given to the owner's account")
    func acceptances() throws {
        let owner = try account("ana")
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "other"))
        let deck = try world.send(PrepareCollaboration(owner: owner, metadata: metadata)).collaborationIdentifier
        world.storage.keep(
            StoredRecord(key: RecordKeys.acceptance(deck, person(2)), version: 1, value: [7]))
        #expect(world.code(of: ClaimOwnership(of: deck, by: owner, as: person(2))) == .storageDamaged)
        #expect(try world.send(ClaimOwnership(of: deck, by: owner, as: person(3))).changed == 1)
    }

    @Test("An invitation whose place is damaged is not called unknown")
    func places() throws {
        let deck = try world.start()
        let token = InvitationToken(bytes: [UInt8](repeating: 1, count: 16))
        try world.send(CreateInvitation(to: deck, token: token))
        try damage(RecordKeys.invitationPlace(world.context.name(of: token)))
        let requests: [any RuledRequest] = [
            ReadInvitation(token), AcceptInvitation(token, for: bo), WithdrawAcceptance(token, for: bo),
        ]
        for request in requests { #expect(world.code(of: request) == .storageDamaged, "\(request)") }
    }
}
