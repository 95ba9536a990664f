@testable import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// In doubt nobody gets more than was said.
@Suite("Nothing widens access by itself")
struct WideningTests {
    private let world = World()

    private func roots(_ collaboration: CollaborationIdentifier) -> Set<Digest> {
        world.storage.sets[collaboration] ?? []
    }

    /// Changes the set without the layer.
    private func change(
        _ collaboration: CollaborationIdentifier, adding added: [UInt8] = [], removing removed: [UInt8] = []
    ) throws {
        var edit = Edit(collaboration)
        edit.addedRoots = added.map { person($0).rootHash }
        edit.removedRoots = removed.map { person($0).rootHash }
        _ = try world.storage.apply(edit)
    }

    // MARK: Requests that change nothing now

    @Test("Every request that changes nothing is remembered, and what could give access is refused without room for it")
    func remembering() throws {
        let collaboration = try world.start(options: .deck)
        let (ana, bo) = (try account("ana"), try account("bo"))
        try world.admit([person(2)], to: collaboration)
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        let token = InvitationToken(bytes: [UInt8](repeating: 1, count: 16))
        try world.send(CreateInvitation(to: collaboration, token: token))
        try world.send(AcceptInvitation(token, for: bo))
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
        try world.send(SetConsent(of: bo, .app("b"), isAllowed: false))
        let link = try url("https://a.example/1")
        try world.send(
            RecordShare(
                url: link, app: "a", sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: "c"),
                recipients: [ShareRecipient(bo)]))
        try world.send(PinHighlight(link, of: bo, for: .everyApp))
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let plain = PrepareCollaboration(owner: ana, metadata: metadata)
        metadata.userSelectedShareOptions = .deck
        let grant = try world.grant(person(1), in: collaboration)
        let remembered: [any RuledRequest] = [
            AddParticipants([NewParticipant(person(2))], to: collaboration),
            AddParticipants([NewParticipant(person(2))], to: collaboration, by: grant),
            UpdateParticipants(of: collaboration, adding: [NewParticipant(person(2))], removing: [person(9)]),
            UpdateParticipant(ParticipantChange(person(2), displayName: .clear), in: collaboration),
            UpdateShareOptions(collaboration, selectedOptions: ["edit"]),
            ClaimOwnership(of: collaboration, by: ana, as: person(1)),
            LinkAccount(bo, to: person(2), in: collaboration),
            PrepareCollaboration(owner: ana, metadata: metadata),
            PrepareCollaboration(owner: ana, metadata: plain.metadata, ownerIdentity: person(1)),
            AcceptInvitation(token, for: bo),
            SetConsent(of: bo, .everything, isAllowed: true), SetConsent(of: bo, .app("c"), isAllowed: nil),
            PinHighlight(link, of: bo, for: .everyApp),
        ]
        let records = world.storage.records
        for request in remembered {
            let edit = try #require(try world.edit(request), "\(request)")
            #expect(edit.isEmpty && edit.needsSpace, "\(request)")
            #expect(!edit.records.isEmpty, "\(request) depends on nothing")
            #expect(try world.topics(request).isEmpty, "\(request)")
            let sequence = world.storage.sequence
            try world.send(request)
            #expect(world.storage.records == records && world.storage.sequence == sequence + 1, "\(request)")
        }
        #expect(try remembered.allSatisfy { try !isAnsweredWithoutRoom($0) })
    }

    /// Whether the request is answered although there is no room to remember it.
    private func isAnsweredWithoutRoom<R: RuledRequest>(_ request: R) throws -> Bool {
        guard case .note(_, let answer) = try world.decide(request) else { return false }
        _ = answer(nil)
        return true
    }

    @Test("A request that changes nothing and gives nobody anything is remembered, and answered without room for it")
    func notes() throws {
        let collaboration = try world.start(options: .deck)
        let (ana, bo) = (try account("ana"), try account("bo"))
        try world.admit([person(2)], to: collaboration)
        let grant = try world.grant(person(2), in: collaboration)
        let link = try url("https://a.example/1")
        func share(_ seconds: Double) -> RecordShare {
            RecordShare(
                url: link, app: "a", sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: "c"),
                date: world.now - seconds, recipients: [ShareRecipient(bo)])
        }
        try world.send(share(0))
        try world.send(SetConsent(of: bo, .everything, isAllowed: false))
        let tokens = (1...3).map { InvitationToken(bytes: [UInt8](repeating: $0, count: 16)) }
        let invitations = try tokens.map { try world.send(CreateInvitation(to: collaboration, token: $0)) }
        try world.send(AcceptInvitation(tokens[0], for: bo, identity: person(3)))
        try world.send(RevokeInvitation(invitations[1].identifier, of: collaboration))
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let nowhere = LocalCollaborationIdentifier(rawValue: "nowhere")
        let requests: [any RuledRequest] = [
            PrepareCollaboration(owner: ana, metadata: metadata),
            AbandonCollaboration(owner: ana, localIdentifier: nowhere),
            RemoveParticipants([person(9)], from: collaboration),
            UpdateParticipants(of: collaboration, removing: [person(9)]),
            AddParticipants([], to: collaboration), LinkAccount(nil, to: person(2), in: collaboration),
            CustomizeDetails(of: collaboration), PostNotices([], on: collaboration, by: grant),
            CreateInvitation(to: collaboration, token: tokens[2]),
            AcceptInvitation(tokens[0], for: bo, identity: person(3)), WithdrawAcceptance(tokens[2], for: bo),
            RevokeInvitation(invitations[1].identifier, of: collaboration), share(10),
            PinHighlight(link, of: bo, for: .everyApp, isPinned: false),
            SetConsent(of: bo, .everything, isAllowed: false),
        ]
        for request in requests {
            #expect(try isAnsweredWithoutRoom(request), "\(request)")
            let (records, sequence) = (world.storage.records, world.storage.sequence)
            try world.send(request)
            #expect(world.storage.records == records && world.storage.sequence == sequence + 1, "\(request)")
        }
        try world.send(RemoveHighlight(link, of: bo, for: .everyApp))
        #expect(try isAnsweredWithoutRoom(RemoveHighlight(link, of: bo, for: .everyApp)))
        // What is told may not become untrue at the same time.
        let nobody = try world.edit(RemoveParticipants([person(9)], from: collaboration))
        let isIn = try world.edit(requests[9])
        try world.admit([person(9)], to: collaboration)
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        #expect(try world.isStale(nobody) && world.isStale(isIn))
    }

    // MARK: Identities and accounts

    @Test("An identity that is added again after its removal is no other account's")
    func addedAgain() throws {
        let collaboration = try world.send(
            PrepareCollaboration(
                owner: try account("ana"),
                metadata: CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck")))
        ).collaborationIdentifier
        try world.admit([person(2)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(2), in: collaboration))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        try world.admit([person(2)], to: collaboration)
        #expect(try world.participants(of: collaboration)[person(2)]?.account == nil)
        let claim = ClaimOwnership(of: collaboration, by: try account("ana"), as: person(2))
        #expect(world.code(of: claim) == .notPermitted)
        let tokens = (1...2).map { InvitationToken(bytes: [UInt8](repeating: $0, count: 16)) }
        for token in tokens { try world.send(CreateInvitation(to: collaboration, token: token)) }
        let stolen = AcceptInvitation(tokens[0], for: try account("cy"), identity: person(2))
        #expect(try world.send(stolen).refusal == .conflict)
        // Removed once more, without a link, it is still that account's.
        let gone = try world.send(RemoveParticipants([person(2)], from: collaboration)).removed
        #expect(gone == [RemovedParticipant(identity: person(2), account: try account("bo"))])
        try world.admit([person(2)], to: collaboration)
        let own = AcceptInvitation(tokens[1], for: try account("bo"), identity: person(2))
        #expect(try world.send(own).state == .in)
    }

    @Test("What a remembered request depends on may not change at the same time")
    func staleRemembering() throws {
        let collaboration = try world.start(options: .deck)
        try world.admit([person(2)], to: collaboration)
        let adding = try world.edit(AddParticipants([NewParticipant(person(2))], to: collaboration))
        let changing = try world.edit(UpdateParticipant(ParticipantChange(person(2)), in: collaboration))
        let selecting = try world.edit(UpdateShareOptions(collaboration, selectedOptions: ["edit"]))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        #expect(try world.isStale(adding) && world.isStale(changing))
        try world.send(UpdateShareOptions(collaboration, selectedOptions: ["view"]))
        #expect(try world.isStale(selecting))
    }

    // MARK: Root hashes without a participant

    @Test("A root hash that was added without a participant leaves the set with a removal")
    func bareRoots() throws {
        let collaboration = try world.start()
        try change(collaboration, adding: [5])
        let gone = try world.send(RemoveParticipants([person(5), person(6)], from: collaboration))
        #expect(gone.changed == 1 && gone.removed.isEmpty && gone.sequence == world.storage.sequence)
        #expect(roots(collaboration) == [person(1).rootHash])
        #expect(try world.send(RemoveParticipants([person(5)], from: collaboration)).changed == 0)
        // A person who was removed, and whose root hash came back without the layer.
        try world.admit([person(2)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(2), in: collaboration))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        try change(collaboration, adding: [2])
        let again = try world.send(UpdateParticipants(of: collaboration, removing: [person(2)]))
        #expect(again.changed == 1)
        #expect(again.removed == [RemovedParticipant(identity: person(2), account: try account("bo"))])
        #expect(roots(collaboration) == [person(1).rootHash])
    }

    @Test("Members remove no root hash without a participant, and its removal is decided again when the person comes")
    func bareRootsByGrant() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try change(collaboration, adding: [5])
        func removal(_ number: UInt8) throws -> RemoveParticipants {
            RemoveParticipants([person(5)], from: collaboration, by: try world.grant(person(number), in: collaboration))
        }
        #expect(world.code(of: try removal(2)) == .notPermitted)
        let edit = try world.edit(try removal(1))
        try world.send(AddParticipants([NewParticipant(person(5))], to: collaboration))
        #expect(try world.isStale(edit))
        #expect(try world.send(try removal(1)).removed.map(\.identity) == [person(5)])
        #expect(roots(collaboration) == [person(1).rootHash, person(2).rootHash])
    }

    @Test("Shares of which the root hash was taken out of the set are listed no longer")
    func sharesWithoutRoot() throws {
        let collaboration = try world.start()
        let token = InvitationToken(bytes: [UInt8](repeating: 1, count: 16))
        let bo = try account("bo")
        try world.send(CreateInvitation(to: collaboration, token: token))
        try world.send(AcceptInvitation(token, for: bo, identity: person(2)))
        func isListed() throws -> Bool { try !world.send(ListShares(of: bo, scope: .shared)).shares.isEmpty }
        #expect(try isListed())
        try change(collaboration, removing: [2])
        #expect(try !isListed())
        try world.admit([person(3)], to: collaboration)
        try world.send(LinkAccount(bo, to: person(3), in: collaboration))
        #expect(try isListed(), "the account takes part as somebody else")
        try change(collaboration, removing: [3])
        #expect(try !isListed())
    }

    // MARK: Whose an identity is

    /// A collaboration that "ana" owns without an identity yet, and an invitation to it that "bo" has accepted as 2.
    private func invited() throws -> CollaborationIdentifier {
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let collaboration = try world.send(PrepareCollaboration(owner: try account("ana"), metadata: metadata))
            .collaborationIdentifier
        let token = InvitationToken(bytes: [UInt8](repeating: 1, count: 16))
        try world.send(CreateInvitation(to: collaboration, token: token))
        try world.send(AcceptInvitation(token, for: try account("bo"), identity: person(2)))
        try world.join(person(2), in: collaboration)
        return collaboration
    }

    private func claims(_ number: UInt8, _ collaboration: CollaborationIdentifier) throws -> [any RuledRequest] {
        let metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        let ana = try account("ana")
        return [
            ClaimOwnership(of: collaboration, by: ana, as: person(number)),
            PrepareCollaboration(owner: ana, metadata: metadata, ownerIdentity: person(number)),
        ]
    }

    @Test("The owner claims no identity that came in with another account, or was removed with it")
    func claimOfOthers() throws {
        let collaboration = try invited()
        for claim in try claims(2, collaboration) { #expect(world.code(of: claim) == .notPermitted) }
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        for claim in try claims(2, collaboration) { #expect(world.code(of: claim) == .notPermitted, "was bo's") }
        try world.admit([person(3)], to: collaboration)
        try world.send(LinkAccount(try account("cy"), to: person(3), in: collaboration))
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        for claim in try claims(3, collaboration) { #expect(world.code(of: claim) == .notPermitted, "was cy's") }
        #expect(roots(collaboration).isEmpty)
        // An identity of nobody else may be claimed, also one that was removed.
        try world.admit([person(4)], to: collaboration)
        try world.send(RemoveParticipants([person(4)], from: collaboration))
        for claim in try claims(4, collaboration) { #expect(world.code(of: claim) == nil) }
    }

    @Test("A claim is decided again when an account takes the identity at the same time")
    func staleClaim() throws {
        let collaboration = try invited()
        let token = InvitationToken(bytes: [UInt8](repeating: 2, count: 16))
        try world.send(CreateInvitation(to: collaboration, token: token))
        try world.admit([person(5)], to: collaboration)
        let edits = try claims(5, collaboration).map { try world.edit($0) }
        try world.send(AcceptInvitation(token, for: try account("cy"), identity: person(5)))
        for edit in edits { #expect(try world.isStale(edit)) }
    }

    @Test("Who came in with an account is linked to no other one")
    func linkOfOthers() throws {
        let collaboration = try invited()
        let (bo, cy) = (try account("bo"), try account("cy"))
        #expect(world.code(of: LinkAccount(cy, to: person(2), in: collaboration)) == .notPermitted)
        #expect(world.code(of: LinkAccount(bo, to: person(2), in: collaboration)) == nil)
        #expect(world.code(of: LinkAccount(cy, to: person(2), in: collaboration)) == .notPermitted)
        #expect(world.code(of: LinkAccount(nil, to: person(2), in: collaboration)) == nil)
        // A person without an acceptance is linked while an account accepts as that person.
        try world.admit([person(3)], to: collaboration)
        let token = InvitationToken(bytes: [UInt8](repeating: 2, count: 16))
        try world.send(CreateInvitation(to: collaboration, token: token))
        let edit = try world.edit(LinkAccount(bo, to: person(3), in: collaboration))
        try world.send(AcceptInvitation(token, for: cy, identity: person(3)))
        #expect(try world.isStale(edit))
    }

    @Test("The ownership is not handed over to a person whose root hash was taken out of the set")
    func uselessHeir() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(LinkAccount(try account("bo"), to: person(2), in: collaboration))
        let transfer = TransferOwnership(of: collaboration, from: try account("ana"), to: person(2))
        try change(collaboration, removing: [2])
        #expect(world.code(of: transfer) == .notPermitted)
        try change(collaboration, adding: [2])
        #expect(world.code(of: transfer) == nil)
    }

    @Test("A link to a collaboration that has ended leaves shelves however it is written")
    func spellingsOfEndedLinks() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
        let host = "decks.example/c/\(collaboration)"
        let spellings = ["https://\(host)", "http://\(host)", "https://bo@\(host)/page", "HTTP://x:y@\(host)?z"]
        func share(_ text: String) throws -> RecordShare {
            RecordShare(
                url: try url(text), app: "a", sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: "c"),
                recipients: [ShareRecipient(bo)])
        }
        for text in spellings { try world.send(try share(text)) }
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)).count == spellings.count)
        try world.send(StopSharing(collaboration))
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)).count == 0)
        for text in spellings { #expect(world.code(of: try share(text)) == .unknownCollaboration) }
        for text in spellings.dropFirst() {
            #expect(world.code(of: FindHighlight(url: try url(text))) == .unknownCollaboration)
        }
    }
}
