import Core
import Foundation
import Hashing
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// One collaboration from its start to its end: its people, its link and the grants that they hold. Each function is
/// the next chapter and asserts every feed, shelf and verdict on the way.
private struct Story {
    let calendar = TestCalendar()
    /// Keeps the service running until the story is over.
    let service: TestService
    let client: RootgateClient
    let owner = SimulatedPerson("owner")
    let ana = SimulatedPerson("ana", devices: 2)
    let bo = SimulatedPerson("bo", devices: 1)
    let cy = SimulatedPerson("cy", devices: 5)
    let metadata: CollaborationMetadata
    let prepared: PrepareCollaboration.Answer
    /// One grant for each device, by the person's name.
    var grants: [String: [AccessGrant]] = [:]

    /// Starts a service, and the collaboration in it: everybody who is invited may read, unless said otherwise.
    init() async throws {
        service = try TestService(calendar: calendar)
        client = try service.client()
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck.key"))
        metadata.title = "Deck"
        metadata.defaultShareOptions = ShareOptions(optionsGroups: [
            OptionsPickerGroup(
                identifier: "permission",
                options: [
                    CollaborationOption(title: "Can make changes", identifier: "edit", effects: [.readWrite]),
                    CollaborationOption(title: "Can view", identifier: "view", effects: [.readOnly]),
                ])
        ])
        self.metadata = metadata
        prepared = try await client.send(
            PrepareCollaboration(owner: owner.account, metadata: metadata, selectedOptions: ["view"]))
    }

    var deck: CollaborationIdentifier { prepared.collaborationIdentifier }
    /// The people whom the owner invites.
    var people: [SimulatedPerson] { [ana, bo, cy] }

    var anas: AccessGrant { get throws { try #require(grants["ana"]?.first) } }
    var bos: AccessGrant { get throws { try #require(grants["bo"]?.first) } }
    var owners: AccessGrant { get throws { try #require(grants["owner"]?.first) } }

    private func sentences(_ feed: Feed, after: UInt64 = 0) async throws -> [String] {
        try await client.send(ReadNotices(feed, after: after)).notices.map(\.sentence)
    }

    private func statuses(of grants: [AccessGrant]) async throws -> [GrantStatus] {
        try await client.check(grants.map { GrantCheck($0, in: deck) }).map(\.status)
    }

    /// The owner claims an identity and adds three people. Before that nobody takes part, not even the owner.
    func start() async throws {
        #expect(prepared.isNew)
        #expect(prepared.highlight.summary == "Can view")
        for person in people + [owner] {
            #expect(try await person.open(deck, client).verdict == .notParticipant)
        }
        _ = try await client.send(
            ClaimOwnership(of: deck, by: owner.account, as: owner.identity(in: deck), displayName: "Owner"))
        _ = try await client.send(
            AddParticipants(
                [
                    NewParticipant(try ana.identity(in: deck), displayName: "Ana", permission: .readWrite),
                    NewParticipant(try bo.identity(in: deck), displayName: "Bo"),
                    NewParticipant(try cy.identity(in: deck), displayName: "Cy"),
                ], to: deck))
        let invited = try await client.send(ListParticipants(of: deck)).participants
        #expect(invited.count == 4)
        #expect(invited.allSatisfy { $0.state == .invited && $0.joinedAt == nil && $0.account == nil })
    }

    /// The link is shared in conversations and comes onto the shelves of those who know somebody there.
    func shares() async throws {
        for person in people {
            _ = try await client.send(SetConsent(of: person.account, .app("com.example.decks"), isAllowed: true))
        }
        for (person, conversation) in [(ana, "pair"), (bo, "group"), (cy, "group")] {
            calendar.advance(seconds: 10)
            _ = try await client.send(
                RecordShare(
                    url: prepared.url, title: "Deck", app: "com.example.decks", sharer: Sharer(name: "Owner"),
                    conversation: Conversation(identifier: conversation, isGroup: conversation == "group"),
                    recipients: [ShareRecipient(person.account, knowsSomebody: person !== cy)]))
        }
        for (person, count) in [(ana, 1), (bo, 1), (cy, 0), (owner, 0)] {
            let shelf = try await client.send(ReadShelf(of: person.account, for: .app("com.example.decks")))
            #expect(shelf.count == count, "\(person.name)")
            #expect(shelf.highlights.allSatisfy { $0.url == prepared.url && !$0.isPinned && !$0.isSuggested })
        }
    }

    /// Everybody opens the link on each of their devices, joins and gets grants.
    mutating func opening() async throws {
        for person in people + [owner] {
            let highlight = try await HighlightCenter(client, account: person.account, app: "com.example.decks")
                .collaborationHighlight(for: prepared.url)
            #expect(highlight.collaborationIdentifier == deck)
            for device in 0..<person.deviceCount {
                calendar.advance(seconds: 1)
                let decision = try await person.open(deck, device: device, client)
                #expect(decision.verdict == .granted)
                grants[person.name, default: []].append(try #require(decision.grant))
            }
        }
        let joined = try await client.send(ListParticipants(of: deck)).participants
        #expect(joined.allSatisfy { $0.state == .joined && $0.joinedAt != nil })
        for person in people {
            _ = try await client.send(LinkAccount(person.account, to: person.identity(in: deck), in: deck))
        }
    }

    /// Only those who may write can post an edit.
    func permissions() async throws {
        for (name, permission) in [
            ("ana", Permission.readWrite), ("bo", .readOnly), ("cy", .readOnly), ("owner", .readWrite),
        ] {
            let decisions = try await client.check((grants[name] ?? []).map { GrantCheck($0, in: deck) })
            #expect(decisions.allSatisfy { $0.status == .valid && $0.permission == permission }, "\(name)")
        }
        _ = try await client.send(PostNotices([.change(trigger: .edit)], on: deck, by: try anas))
        await #expect(throws: ServiceError(.notPermitted, "")) {
            try await client.send(PostNotices([.change(trigger: .edit)], on: deck, by: try bos))
        }
    }

    /// A mention is told to the person whom it names, and to nobody else.
    func mention() async throws {
        _ = try await client.send(
            PostNotices(
                [.change(trigger: .comment), .mention(person: try cy.identity(in: deck))], on: deck, by: try bos))
        let common = ["Ana edited “Deck”", "Bo commented in “Deck”"]
        #expect(try await sentences(.collaboration(deck)) == common)
        #expect(try await sentences(.participant(bo.identity(in: deck), of: deck)) == common)
        #expect(try await sentences(.account(ana.account)) == common)
        #expect(try await sentences(.account(cy.account)) == common + ["Bo mentioned you in “Deck”"])
        #expect(try await sentences(.account(owner.account)) == [], "the owner's account is not linked")
    }

    /// Removing a person revokes the grants that the person holds.
    func removal() async throws {
        let cys = try #require(grants["cy"])
        let last = try #require(cys.last)
        let proofInHand = try await cy.device(1).signedIdentityProof(
            in: deck, signing: try await client.challenges(1).challenges[0])
        let removal = try await client.send(
            UpdateParticipants(of: deck, removing: [cy.identity(in: deck)], by: try owners))
        #expect(removal.changed == 1)
        #expect(removal.removed == [RemovedParticipant(identity: try cy.identity(in: deck), account: cy.account)])
        #expect(try await statuses(of: cys) == Array(repeating: .revoked, count: 5))
        #expect(try await client.open(proofInHand, in: deck).verdict == .notParticipant)
        #expect(try await client.verify(proofInHand, in: deck) == .notParticipant)
        await #expect(throws: ServiceError(.grantRefused, "")) {
            try await client.send(PostNotices([.change(trigger: .comment)], on: deck, by: last))
        }
        await #expect(throws: ServiceError(.unknownParticipant, "")) {
            try await client.send(ReadNotices(.participant(cy.identity(in: deck), of: deck)))
        }
        #expect(try await sentences(.account(cy.account)) == [])
        #expect(try await statuses(of: [anas, bos]) == [.valid, .valid])
    }

    /// Changing the options revokes the grants of a participant without a permission of their own. Returns the new
    /// grant of such a participant, who may write now.
    func options() async throws -> AccessGrant {
        _ = try await client.send(UpdateShareOptions(deck, selectedOptions: ["edit"]))
        #expect(try await statuses(of: [anas, bos]) == [.valid, .revoked])
        let better = try await bo.open(deck, client)
        let writing = try #require(better.grant)
        #expect(try await client.check([GrantCheck(writing, in: deck)]).map(\.permission) == [.readWrite])
        let before = try await client.send(ReadNotices(.collaboration(deck))).next
        _ = try await client.send(PostNotices([.persistence(trigger: .renamed)], on: deck, by: writing))
        #expect(try await sentences(.collaboration(deck), after: before) == ["Bo renamed “Deck”"])
        return writing
    }

    /// The details show who is left and what happened last.
    func details() async throws {
        let details = try await client.send(ReadDetails(of: deck, viewer: try bo.identity(in: deck)))
        #expect(details.participantCount == 3)
        #expect(details.manageOperations.isEmpty)
        let owners = try await client.send(ReadDetails(of: deck, viewer: try owner.identity(in: deck)))
        #expect(owners.manageOperations == ManageOperation.allCases)
        #expect(details.manageButtonTitle == "Manage Shared File")
        #expect(
            details.recentActivity.map(\.sentence) == [
                "Bo renamed “Deck”", "Bo commented in “Deck”", "Ana edited “Deck”",
            ])
    }

    /// Nothing is left of a collaboration that has ended.
    func end(_ writing: AccessGrant) async throws {
        _ = try await client.send(StopSharing(deck, by: try owners))
        #expect(try await ana.open(deck, client).verdict == .unknownCollaboration)
        #expect(try await statuses(of: [anas, writing]) == [.revoked, .revoked])
        await #expect(throws: ServiceError(.unknownCollaboration, "")) {
            try await client.send(ReadNotices(.collaboration(deck)))
        }
        #expect(try await sentences(.account(ana.account)) == [])
        let fresh = try await client.send(PrepareCollaboration(owner: owner.account, metadata: metadata))
        #expect(fresh.isNew && fresh.collaborationIdentifier != deck)
    }
}

struct StoryTests {
    @Test("An owner and three people with eight devices share, open, post and leave")
    func ownerThreePeopleEightDevices() async throws {
        var story = try await Story()
        try await story.start()
        try await story.shares()
        try await story.opening()
        try await story.permissions()
        try await story.mention()
        try await story.removal()
        let writing = try await story.options()
        try await story.details()
        try await story.end(writing)
    }
}
