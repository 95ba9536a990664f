import Core
import Foundation
import Hashing
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// One collaboration from its start to its end, every intermediate feed, shelf and verdict asserted.
@Suite struct StoryTests {
    private func sentences(_ feed: Feed, _ client: RootgateClient, after: UInt64 = 0) async throws -> [String] {
        try await client.send(ReadNotices(feed, after: after)).notices.map(\.sentence)
    }

    @Test("An owner and three people with eight devices share, open, post and leave")
    func ownerThreePeopleEightDevices() async throws {
        let calendar = TestCalendar()
        let service = try TestService(calendar: calendar)
        let client = try service.client()
        let owner = SimulatedPerson("owner")
        let ana = SimulatedPerson("ana", devices: 2)
        let bo = SimulatedPerson("bo", devices: 1)
        let cy = SimulatedPerson("cy", devices: 5)
        let people = [ana, bo, cy]

        // The owner starts it: everybody who is invited may read, unless said otherwise.
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck.key"))
        metadata.title = "Deck"
        metadata.defaultShareOptions = ShareOptions(optionsGroups: [
            OptionsPickerGroup(
                identifier: "permission",
                options: [
                    CollaborationOption(title: "Can make changes", identifier: "edit", permission: .readWrite),
                    CollaborationOption(title: "Can view", identifier: "view", permission: .readOnly),
                ])
        ])
        let prepared = try await client.send(
            PrepareCollaboration(owner: owner.account, metadata: metadata, selectedOptions: ["view"]))
        let deck = prepared.collaborationIdentifier
        #expect(prepared.isNew)
        #expect(prepared.highlight.summary == "Can view")
        // Nobody is in it, not even its owner.
        for person in people + [owner] {
            #expect(try await person.open(deck, client).verdict == .notParticipant)
        }
        _ = try await client.send(
            AddParticipants(
                [
                    NewParticipant(
                        try owner.identity(in: deck), displayName: "Owner", role: .administrator, permission: .readWrite
                    ),
                    NewParticipant(try ana.identity(in: deck), displayName: "Ana", permission: .readWrite),
                    NewParticipant(try bo.identity(in: deck), displayName: "Bo"),
                    NewParticipant(try cy.identity(in: deck), displayName: "Cy"),
                ], to: deck))
        let invited = try await client.send(ListParticipants(of: deck)).participants
        #expect(invited.count == 4)
        #expect(invited.allSatisfy { $0.state == .invited && $0.joinedAt == nil && $0.account == nil })

        // The link lands in conversations, and so on the shelves.
        for (person, conversation) in [(ana, "pair"), (bo, "group"), (cy, "group")] {
            calendar.advance(seconds: 10)
            _ = try await client.send(
                RecordShare(
                    url: prepared.url, title: "Deck", app: "com.example.decks", sharer: Sharer(name: "Owner"),
                    conversation: Conversation(identifier: conversation, isGroup: conversation == "group"),
                    recipients: [ShareRecipient(person.account, knowsSomebody: person !== cy)]))
        }
        for (person, count) in [(ana, 1), (bo, 1), (cy, 0), (owner, 0)] {
            let shelf = try await client.send(ReadShelf(of: person.account))
            #expect(shelf.count == count, "\(person.name)")
            #expect(shelf.highlights.allSatisfy { $0.url == prepared.url && !$0.isPinned && !$0.isSuggested })
        }

        // Each opens the link from each device.
        var grants: [String: [AccessGrant]] = [:]
        for person in people + [owner] {
            let highlight = try await HighlightCenter(client, account: person.account)
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

        // Permissions differ.
        for (name, permission) in [
            ("ana", Permission.readWrite), ("bo", .readOnly), ("cy", .readOnly), ("owner", .readWrite),
        ] {
            let decisions = try await client.check((grants[name] ?? []).map { GrantCheck($0, in: deck) })
            #expect(decisions.allSatisfy { $0.status == .valid && $0.permission == permission }, "\(name)")
        }
        let anas = try #require(grants["ana"]?.first)
        let bos = try #require(grants["bo"]?.first)
        let cys = try #require(grants["cy"]?.last)
        _ = try await client.send(PostNotices([.change(trigger: .edit)], on: deck, by: anas))
        await #expect(throws: ServiceError(.notPermitted, "")) {
            try await client.send(PostNotices([.change(trigger: .edit)], on: deck, by: bos))
        }

        // One is mentioned: nobody else learns of it.
        _ = try await client.send(
            PostNotices(
                [.change(trigger: .comment), .mention(person: try cy.identity(in: deck))], on: deck, by: bos))
        let common = ["Ana edited “Deck”", "Bo commented in “Deck”"]
        #expect(try await sentences(.collaboration(deck), client) == common)
        #expect(try await sentences(.participant(bo.identity(in: deck), of: deck), client) == common)
        #expect(try await sentences(.account(ana.account), client) == common)
        #expect(try await sentences(.account(cy.account), client) == common + ["Bo mentioned you in “Deck”"])
        #expect(try await sentences(.account(owner.account), client) == [], "the owner's account is not linked")

        // One is removed while holding a grant.
        let proofInHand = try await cy.device(1).signedIdentityProof(
            in: deck, signing: try await client.challenges(1).challenges[0])
        let removal = try await client.send(RemoveParticipants([cy.identity(in: deck)], from: deck))
        #expect(removal.changed == 1)
        #expect(
            try await client.check(grants["cy"]!.map { GrantCheck($0, in: deck) }).map(\.status)
                == Array(repeating: .revoked, count: 5))
        #expect(try await client.open(proofInHand, in: deck).verdict == .notParticipant)
        #expect(try await client.verify(proofInHand, in: deck) == .notParticipant)
        await #expect(throws: ServiceError(.grantRefused, "")) {
            try await client.send(PostNotices([.change(trigger: .comment)], on: deck, by: cys))
        }
        await #expect(throws: ServiceError(.unknownParticipant, "")) {
            try await client.send(ReadNotices(.participant(cy.identity(in: deck), of: deck)))
        }
        #expect(try await sentences(.account(cy.account), client) == [])
        #expect(
            try await client.check([GrantCheck(anas, in: deck), GrantCheck(bos, in: deck)]).map(\.status) == [
                .valid, .valid,
            ])

        // The options change: who follows them may write now, and needs a new grant for it.
        _ = try await client.send(UpdateShareOptions(deck, selectedOptions: ["edit"]))
        #expect(
            try await client.check([GrantCheck(anas, in: deck), GrantCheck(bos, in: deck)]).map(\.status) == [
                .valid, .revoked,
            ])
        let better = try await bo.open(deck, client)
        let writing = try #require(better.grant)
        #expect(try await client.check([GrantCheck(writing, in: deck)]).map(\.permission) == [.readWrite])
        let before = try await client.send(ReadNotices(.collaboration(deck))).next
        _ = try await client.send(PostNotices([.persistence(trigger: .renamed)], on: deck, by: writing))
        #expect(try await sentences(.collaboration(deck), client, after: before) == ["Bo renamed “Deck”"])

        // The popover.
        let details = try await client.send(ReadDetails(of: deck, viewer: try bo.identity(in: deck)))
        #expect(details.participantCount == 3)
        #expect(details.manageOperations.isEmpty)
        #expect(details.manageButtonTitle == "Manage Shared File")
        #expect(
            details.recentActivity.map(\.sentence) == [
                "Bo renamed “Deck”", "Bo commented in “Deck”", "Ana edited “Deck”",
            ])

        // The end.
        _ = try await client.send(StopSharing(deck))
        #expect(try await ana.open(deck, client).verdict == .unknownCollaboration)
        #expect(
            try await client.check([GrantCheck(anas, in: deck), GrantCheck(writing, in: deck)]).map(\.status) == [
                .revoked, .revoked,
            ])
        await #expect(throws: ServiceError(.unknownCollaboration, "")) {
            try await client.send(ReadNotices(.collaboration(deck)))
        }
        #expect(try await sentences(.account(ana.account), client) == [])
        let fresh = try await client.send(PrepareCollaboration(owner: owner.account, metadata: metadata))
        #expect(fresh.isNew && fresh.collaborationIdentifier != deck)
    }
}
