import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Posting notices")
struct PostNoticesTests {
    private let world = World()

    @Test("Events that are posted together stay together, in their order, with date, author and sentence")
    func together() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(UpdateParticipant(ParticipantChange(person(2), displayName: .set("Bo")), in: collaboration))
        let events: [HighlightEvent] = [
            .change(trigger: .edit), .change(trigger: .comment),
            .membership(trigger: .addedCollaborator, person: person(2)),
            .membership(trigger: .removedCollaborator, person: nil), .mention(person: person(2)),
            .persistence(trigger: .renamed),
        ]
        world.now += 1
        #expect(try world.post(events, by: person(1), on: collaboration).changed == events.count)
        let page = try world.send(ReadNotices(.participant(person(2), of: collaboration)))
        #expect(page.notices.map(\.event) == events)
        #expect(page.notices.map(\.place) == Array(0..<6))
        #expect(page.notices.map(\.identifier) == (0..<6).map { "\(world.storage.sequence).\($0)" })
        #expect(page.notices.allSatisfy { $0.author == person(1) && $0.date == world.now })
        #expect(page.notices.allSatisfy { $0.collaboration == collaboration })
        #expect(page.notices.allSatisfy { $0.sequence == world.storage.sequence })
        #expect(
            page.notices.map(\.sentence) == [
                "Ana edited “Deck”", "Ana commented in “Deck”", "Ana added you to “Deck”",
                "A participant no longer takes part in “Deck”", "Ana mentioned you in “Deck”", "Ana renamed “Deck”",
            ])
        #expect(page.next == world.storage.sequence && !page.hasMore)
        let others = try world.send(ReadNotices(.collaboration(collaboration))).notices.map(\.sentence)
        #expect(others.contains("Ana added Bo to “Deck”") && !others.contains { $0.contains("mentioned") })
    }

    @Test("Who joins or leaves is named as the author: nobody adds himself, and nobody is addressed")
    func joiningAndLeaving() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(UpdateParticipant(ParticipantChange(person(2), displayName: .set("Bo")), in: collaboration))
        let events: [HighlightEvent] = [
            .membership(trigger: .addedCollaborator, person: person(2)),
            .membership(trigger: .removedCollaborator, person: person(2)),
        ]
        try world.post(events, by: person(2), on: collaboration)
        for feed in [Feed.collaboration(collaboration), .participant(person(2), of: collaboration)] {
            let page = try world.send(ReadNotices(feed))
            #expect(page.notices.map(\.sentence) == ["Bo joined “Deck”", "Bo left “Deck”"])
            #expect(page.notices.map(\.event) == events)
        }
        let german = try world.send(ReadNotices(.collaboration(collaboration), language: "de-AT"))
        #expect(german.notices.map(\.sentence) == ["Bo ist „Deck“ beigetreten", "Bo hat „Deck“ verlassen"])
        try world.post(events.suffix(1), by: person(2), on: collaboration)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        try world.post(events.suffix(1), by: person(1), on: collaboration)
        let last = try world.send(ReadNotices(.collaboration(collaboration))).notices.suffix(2)
        #expect(last.map(\.sentence) == ["Bo left “Deck”", "Ana removed Bo from “Deck”"])
    }

    @Test("What an event says of a person must be so: who was added takes part, and who was removed does no longer")
    func truth() throws {
        let collaboration = try world.start()
        try world.admit([person(2), person(3)], to: collaboration)
        try world.send(RemoveParticipants([person(3)], from: collaboration))
        let grant = try world.grant(person(1), in: collaboration)
        func code(_ trigger: HighlightEvent.Membership, _ number: UInt8?) -> ServiceError.Code? {
            let event = HighlightEvent.membership(trigger: trigger, person: number.map { person($0) })
            return world.code(of: PostNotices([.change(trigger: .edit), event], on: collaboration, by: grant))
        }
        #expect(code(.addedCollaborator, 3) == .unknownParticipant, "was removed")
        #expect(code(.addedCollaborator, 9) == .unknownParticipant, "never took part")
        #expect(code(.removedCollaborator, 2) == .notPermitted, "takes part")
        #expect(code(.removedCollaborator, 9) == .unknownParticipant, "never took part")
        for (trigger, number): (HighlightEvent.Membership, UInt8?) in [
            (.addedCollaborator, 2), (.removedCollaborator, 3), (.addedCollaborator, nil), (.removedCollaborator, nil),
        ] { #expect(code(trigger, number) == nil) }
    }

    @Test("A post about a person who was removed at the same time is decided again")
    func staleTruth() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        let grant = try world.grant(person(1), in: collaboration)
        let posts = [
            HighlightEvent.membership(trigger: .addedCollaborator, person: person(2)), .mention(person: person(2)),
        ]
        let edits = try posts.map { try world.edit(PostNotices([$0], on: collaboration, by: grant)) }
        let other = try world.edit(PostNotices([.change(trigger: .edit)], on: collaboration, by: grant))
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        for edit in edits { #expect(try world.isStale(edit)) }
        #expect(try !world.isStale(other))
    }

    @Test("A notice can lead to a place in its own collaboration, and to no other place")
    func links() throws {
        let collaboration = try world.start()
        let other = try world.start("other")
        let grant = try world.grant(person(1), in: collaboration)
        let link = try #require(try world.send(FindHighlight(collaboration)).url).absoluteString
        let good = [
            link, link + "/", link + "/page/3", link + "/page/3?x=1#y", link + "?x", "HTTPS" + link.dropFirst(5),
        ]
        for text in good {
            let events: [HighlightEvent] = [
                .change(trigger: .comment, link: try url(text)), .mention(person: person(1), link: try url(text)),
                .membership(trigger: .addedCollaborator, person: nil, link: try url(text)),
                .persistence(trigger: .moved, link: try url(text)),
            ]
            try world.send(PostNotices(events, on: collaboration, by: grant))
            let notices = try world.send(ReadNotices(.participant(person(1), of: collaboration))).notices.suffix(4)
            #expect(notices.map(\.event) == events)
            #expect(notices.map { $0.event.link?.absoluteString } == [text, text, text, text])
        }
        func error(_ text: String) throws -> ServiceError? {
            let events: [HighlightEvent] = [
                .change(trigger: .edit), .change(trigger: .edit, link: try url(text)),
            ]
            return world.error(of: PostNotices(events, on: collaboration, by: grant))
        }
        let foreign = [
            try #require(try world.send(FindHighlight(other)).url).absoluteString, "https://decks.example/c",
            "https://decks.example/d/\(collaboration)", "https://evil.example/c/\(collaboration)",
            "https://decks.example@evil.example/c/\(collaboration)", link + "/../\(other)", link + "x",
            "http" + link.dropFirst(5),
        ]
        for text in foreign {
            let error = try error(text)
            #expect(error?.code == .notPermitted && error?.reason.hasPrefix("events[1].link ") == true, "\(text)")
        }
        for text in ["javascript:alert(1)", "mailto:a@a.example", "file:///c", "page/3"] {
            let error = try error(text)
            #expect(error?.code == .malformedRequest && error?.reason.hasPrefix("events[1].link ") == true, "\(text)")
        }
        #expect(try error(link + "/" + String(repeating: "a", count: Limits.linkBytesMax))?.code == .limitExceeded)
        world.settings.linkBase = nil
        #expect(try error(link)?.code == .notPermitted)
    }

    @Test("Sentences bear the names and the title as they were when it was posted")
    func formerNames() throws {
        let collaboration = try world.start()
        let plain = #"Q "1" \ é"#
        try world.send(UpdateParticipant(ParticipantChange(person(1), displayName: .set(plain)), in: collaboration))
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        try world.send(UpdateParticipant(ParticipantChange(person(1), displayName: .set("Ana L.")), in: collaboration))
        try world.send(CustomizeDetails(of: collaboration, title: .set("Plans")))
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        let sentences = try world.send(ReadNotices(.collaboration(collaboration))).notices.map(\.sentence)
        #expect(sentences == ["\(plain) edited “Deck”", "Ana L. edited “Plans”"])
    }

    @Test("A post that doesn't fit into a record is over the limit")
    func longPost() throws {
        let name = String(repeating: "a", count: Limits.textBytesMax)
        let collaboration = try world.start(title: name)
        try world.send(
            AddParticipants([NewParticipant(person(2), displayName: name, permission: .readWrite)], to: collaboration))
        let event = HighlightEvent.membership(trigger: .addedCollaborator, person: person(2))
        let grant = try world.grant(person(2), in: collaboration)
        let events = [HighlightEvent](repeating: event, count: Limits.noticesPerPostMax)
        #expect(world.code(of: PostNotices(events, on: collaboration, by: grant)) == .limitExceeded)
        #expect(world.code(of: PostNotices(Array(events.prefix(10)), on: collaboration, by: grant)) == nil)
    }

    @Test("A reader may post comments, memberships and mentions, but no edits and nothing together with them")
    func readOnly() throws {
        let collaboration = try world.start("deck", options: try ShareOptions.deck.selecting(["view"]))
        try world.admit([person(2)], to: collaboration)
        let allowed: [HighlightEvent] = [
            .change(trigger: .comment), .membership(trigger: .addedCollaborator, person: nil),
            .mention(person: person(1)),
        ]
        let grant = try world.grant(person(2), in: collaboration)
        let refused =
            [.change(trigger: .edit)]
            + HighlightEvent.Persistence.allCases.map {
                HighlightEvent.persistence(trigger: $0)
            }
        for event in refused {
            #expect(world.code(of: PostNotices([event], on: collaboration, by: grant)) == .notPermitted)
            #expect(world.code(of: PostNotices(allowed + [event], on: collaboration, by: grant)) == .notPermitted)
        }
        #expect(try world.send(PostNotices(allowed, on: collaboration, by: grant)).changed == 3)
        #expect(try world.post(refused, by: person(1), on: collaboration).changed == refused.count)
    }

    @Test("Only participants can be mentioned")
    func mentionOfStrangers() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        let grant = try world.grant(person(1), in: collaboration)
        for number in [UInt8(2), 9] {
            let request = PostNotices([.mention(person: person(number))], on: collaboration, by: grant)
            #expect(world.code(of: request) == .unknownParticipant)
        }
    }

    @Test("A grant that is not valid posts and clears nothing, and the error says why")
    func refusedGrants() throws {
        let collaboration = try world.start("deck", options: .deck)
        let other = try world.start("other")
        try world.admit([person(2), person(3), person(4)], to: collaboration)
        try world.send(AddParticipants([NewParticipant(person(2))], to: other))
        let removed = try world.grant(person(2), in: collaboration)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        let changed = try world.grant(person(3), in: collaboration)
        try world.send(
            UpdateParticipant(ParticipantChange(person(3), role: .administrator), in: collaboration))
        let valid = try world.grant(person(4), in: collaboration)
        let expired = try world.grant(person(1), in: collaboration)
        let cases: [(AccessGrant, GrantStatus)] = [
            (try world.grant(person(1), in: collaboration, isForged: true), .forged),
            (try world.grant(person(1), in: other), .otherCollaboration), (removed, .revoked), (changed, .revoked),
        ]
        for (grant, status) in cases {
            for error in [
                world.error(of: PostNotices([.change(trigger: .comment)], on: collaboration, by: grant)),
                world.error(of: ClearNotices(of: collaboration, by: grant)),
            ] {
                #expect(error?.code == .grantRefused && error?.detail == UInt32(status.rawValue), "\(status)")
                #expect(error?.reason.contains(status.name) == true)
            }
        }
        world.now += 300
        #expect(world.code(of: PostNotices([], on: collaboration, by: valid)) == nil, "valid to its last millisecond")
        world.now += 0.001
        let late = world.error(of: PostNotices([.change(trigger: .comment)], on: collaboration, by: expired))
        #expect(late?.code == .grantRefused && late?.detail == UInt32(GrantStatus.expired.rawValue))
    }

    @Test("A post of the most events is accepted, one more is over the limit, and an empty post changes nothing")
    func limits() throws {
        let collaboration = try world.start()
        let grant = try world.grant(person(1), in: collaboration)
        let events = [HighlightEvent](repeating: .mention(person: person(1)), count: Limits.noticesPerPostMax)
        let over = world.error(of: PostNotices(events + [.change(trigger: .edit)], on: collaboration, by: grant))
        #expect(over?.code == .limitExceeded && over?.detail == UInt32(Limits.noticesPerPostMax))
        #expect(try world.send(PostNotices(events, on: collaboration, by: grant)).changed == 64)
        #expect(
            try world.send(PostNotices([], on: collaboration, by: grant))
                == ChangeReceipt(sequence: world.storage.sequence, changed: 0))
    }

    @Test("A post changes the topic of its collaboration")
    func topics() throws {
        let collaboration = try world.start()
        let request = PostNotices(
            [.change(trigger: .edit)], on: collaboration, by: try world.grant(person(1), in: collaboration))
        #expect(try world.topics(request) == [.collaboration(collaboration)])
    }

    @Test("Posts beyond the limit are deleted over time, and no other posts are")
    func trimming() throws {
        world.settings.noticeCount = 5
        let collaboration = try world.start()
        let other = try world.start("other")
        func kept(_ collaboration: CollaborationIdentifier) throws -> [UInt64] {
            try world.send(ReadNotices(.collaboration(collaboration))).notices.map(\.sequence)
        }
        world.random = RandomSource { $0.initializeMemory(as: UInt8.self, repeating: 0xff) }
        for _ in 0..<12 { try world.post([.change(trigger: .edit)], by: person(1), on: collaboration) }
        for _ in 0..<8 { try world.post([.change(trigger: .edit)], by: person(1), on: other) }
        let all = try kept(collaboration)
        #expect(all.count == 12)
        world.random = RandomSource { $0.initializeMemory(as: UInt8.self, repeating: 0) }
        let new = try #require(try world.post([.change(trigger: .edit)], by: person(1), on: collaboration).sequence)
        #expect(try kept(collaboration) == all.suffix(5) + [new])
        #expect(try kept(other).count == 8)
        world.random = RandomSource.seeded(7)
        for _ in 0..<200 {
            try world.post([.change(trigger: .edit)], by: person(1), on: other)
            #expect(try kept(other).count >= 6)
        }
        #expect(try kept(other).count < 150)
    }

    @Test("Events and feeds come back from JSON as they were, and others are malformed")
    func coding() throws {
        let events: [HighlightEvent] = [
            .change(trigger: .comment), .membership(trigger: .removedCollaborator, person: person(3)),
            .membership(trigger: .addedCollaborator, person: nil), .mention(person: person(4)),
            .persistence(trigger: .moved), .change(trigger: .edit, link: try url("https://a.example/b?c#d")),
        ]
        #expect(try travelled(events) == events)
        #expect(
            String(decoding: try JSON.encode(events[0]), as: UTF8.self) == #"{"kind":"change","trigger":"comment"}"#)
        for text in [#"{"kind":"change","trigger":"created"}"#, #"{"kind":"mention"}"#, #"{"kind":"party"}"#] {
            let error = thrownServiceError { _ = try JSON.decode(HighlightEvent.self, from: Array(text.utf8)) }
            #expect(error?.code == .malformedRequest, "\(text)")
        }
        let name = try #require(CollaborationIdentifier("deck"))
        let feeds: [Feed] = [.collaboration(name), .participant(person(1), of: name), .account(try account("ana"))]
        #expect(try feeds.map { try travelled($0) } == feeds)
        for text in ["{}", #"{"account":""}"#, #"{"collaboration":"a","participant":"00"}"#] {
            let error = thrownServiceError { _ = try JSON.decode(Feed.self, from: Array(text.utf8)) }
            #expect(error?.code == .malformedRequest, "\(text)")
        }
    }
}

@Suite("Reading notices")
struct ReadNoticesTests {
    private let world = World()

    private func sentences(_ feed: Feed) throws -> [String] {
        try world.send(ReadNotices(feed)).notices.map(\.sentence)
    }

    @Test("A mention is only for the mentioned person and the accounts that are linked to it")
    func mentions() throws {
        let collaboration = try world.start()
        try world.admit([person(2), person(3)], to: collaboration)
        let (bo, cy) = (try account("bo"), try account("cy"))
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        try world.send(LinkAccount(cy, to: person(3), in: collaboration))
        try world.post([.mention(person: person(2))], by: person(1), on: collaboration)
        #expect(try sentences(.collaboration(collaboration)) == [])
        #expect(try sentences(.participant(person(1), of: collaboration)) == [])
        #expect(try sentences(.participant(person(3), of: collaboration)) == [])
        #expect(try sentences(.account(cy)) == [])
        #expect(try sentences(.participant(person(2), of: collaboration)) == ["Ana mentioned you in “Deck”"])
        #expect(try sentences(.account(bo)) == ["Ana mentioned you in “Deck”"])
    }

    @Test("A person who is no participant has no feed")
    func strangers() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        try world.send(RemoveParticipants([person(2)], from: collaboration))
        for number in [UInt8(2), 9] {
            let feed = Feed.participant(person(number), of: collaboration)
            #expect(world.code(of: ReadNotices(feed)) == .unknownParticipant)
        }
        #expect(try sentences(.account(try account("nobody"))) == [])
    }

    @Test("A person whose root hash has left the set has no feed, is not mentioned, and sees no details")
    func leftSet() throws {
        let collaboration = try world.start()
        try world.admit([person(2)], to: collaboration)
        let bo = try account("bo")
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        try world.post([.mention(person: person(2))], by: person(1), on: collaboration)
        let feed = Feed.participant(person(2), of: collaboration)
        let grant = try world.grant(person(1), in: collaboration)
        let mention = PostNotices([.mention(person: person(2))], on: collaboration, by: grant)
        func change(_ roots: WritableKeyPath<Edit, [Digest]>) throws {
            var edit = Edit()
            edit.collaboration = collaboration
            edit[keyPath: roots] = [person(2).rootHash]
            _ = try world.storage.apply(edit)
        }
        try change(\.removedRoots)
        #expect(world.code(of: ReadNotices(feed)) == .unknownParticipant)
        #expect(world.code(of: mention) == .unknownParticipant)
        #expect(world.code(of: ReadDetails(of: collaboration, viewer: person(2))) == .unknownParticipant)
        #expect(try sentences(.account(bo)) == [])
        try change(\.addedRoots)
        #expect(try sentences(feed) == ["Ana mentioned you in “Deck”"])
        #expect(try sentences(.account(bo)) == ["Ana mentioned you in “Deck”"])
        #expect(world.code(of: mention) == nil)
    }

    @Test("An account that takes part as several people reads each notice once, and the mentions of each of them")
    func severalIdentities() throws {
        let collaboration = try world.start()
        let bo = try account("bo")
        try world.admit([person(2), person(3)], to: collaboration)
        for number in [UInt8(2), 3] { try world.send(LinkAccount(bo, to: person(number), in: collaboration)) }
        try world.post(
            [
                .change(trigger: .edit), .mention(person: person(3)), .mention(person: person(2)),
                .membership(trigger: .addedCollaborator, person: person(3)),
                .membership(trigger: .addedCollaborator, person: person(2)), .mention(person: person(1)),
            ], by: person(1), on: collaboration)
        let notices = try world.send(ReadNotices(.account(bo))).notices
        #expect(notices.map(\.place) == [0, 1, 2, 3, 4])
        #expect(notices.filter { $0.place > 0 }.allSatisfy { $0.sentence.contains(" you ") })
    }

    @Test("An account's feed has the notices of all its collaborations in one order, and of no others")
    func accountFeed() throws {
        let bo = try account("bo")
        let decks = try (0..<3).map { try world.start("deck \($0)", title: "\($0)") }
        for deck in decks { try world.admit([person(2)], to: deck) }
        for deck in decks.prefix(2) { try world.send(LinkAccount(bo, to: person(2), in: deck)) }
        for index in [0, 1, 2, 1, 0, 2, 0] {
            try world.post([.change(trigger: .edit)], by: person(1), on: decks[index])
        }
        #expect(try sentences(.account(bo)) == [0, 1, 1, 0, 0].map { "Ana edited “\($0)”" })
        try world.send(LinkAccount(nil, to: person(2), in: decks[0]))
        #expect(try sentences(.account(bo)) == ["Ana edited “1”", "Ana edited “1”"])
        try world.send(StopSharing(decks[1]))
        #expect(try sentences(.account(bo)) == [])
    }

    @Test("Notices expire at the end of their time and not before")
    func retention() throws {
        world.settings.noticeSeconds = 3600
        let collaboration = try world.start()
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        world.now += 1800
        try world.post([.change(trigger: .comment)], by: person(1), on: collaboration)
        func events() throws -> [HighlightEvent] {
            try world.send(ReadNotices(.collaboration(collaboration))).notices.map(\.event)
        }
        world.now += 1800
        #expect(try events() == [.change(trigger: .edit), .change(trigger: .comment)])
        world.now += 0.001
        #expect(try events() == [.change(trigger: .comment)])
        #expect(try world.send(ReadDetails(of: collaboration)).recentActivity.count == 1)
        world.now += 1800
        #expect(try events() == [])
        let page = try world.send(ReadNotices(.collaboration(collaboration)))
        #expect(page.next == world.storage.sequence && !page.hasMore)
    }

    @Test("Clearing empties the feed of the participant who clears until the next post, and no other view")
    func clearing() throws {
        let collaboration = try world.start()
        let other = try world.start("other", title: "Other")
        let bo = try account("bo")
        try world.admit([person(2), person(3)], to: collaboration)
        try world.admit([person(2)], to: other)
        for place in [collaboration, other] { try world.send(LinkAccount(bo, to: person(2), in: place)) }
        for place in [collaboration, other] { try world.post([.change(trigger: .edit)], by: person(1), on: place) }
        let clear = ClearNotices(of: collaboration, by: try world.grant(person(2), in: collaboration))
        let late = try #require(try world.edit(clear))
        try world.send(clear)
        #expect(try sentences(.participant(person(2), of: collaboration)) == [])
        #expect(try sentences(.participant(person(2), of: other)) == ["Ana edited “Other”"])
        #expect(try sentences(.participant(person(3), of: collaboration)) == ["Ana edited “Deck”"])
        #expect(try sentences(.collaboration(collaboration)) == ["Ana edited “Deck”"])
        #expect(try sentences(.account(bo)) == ["Ana edited “Deck”", "Ana edited “Other”"])
        for viewer in [nil, person(2), person(3)] {
            #expect(try world.send(ReadDetails(of: collaboration, viewer: viewer)).recentActivity.count == 1)
        }
        try world.post([.change(trigger: .comment)], by: person(1), on: collaboration)
        #expect(try world.isStale(late))
        #expect(
            try sentences(.participant(person(2), of: collaboration)) == ["Ana commented in “Deck”"],
            "what came after the decision is not cleared")
        #expect(
            try sentences(.account(bo)) == ["Ana edited “Deck”", "Ana edited “Other”", "Ana commented in “Deck”"])
    }

    @Test(
        "A language that is no tag is malformed, one that is too long is over the limit, and an unknown one is English")
    func languages() throws {
        let collaboration = try world.start()
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        func code(_ language: String) -> Set<ServiceError.Code?> {
            [
                world.code(of: ReadNotices(.collaboration(collaboration), language: language)),
                world.code(of: ReadDetails(of: collaboration, language: language)),
            ]
        }
        for tag in ["", "-", "de_AT", "de-", "d e", "de\n", "ninechars", "dé"] {
            #expect(code(tag) == [.malformedRequest])
        }
        let longest = "de-" + String(repeating: "abcdefg-", count: 4)
        #expect(code(longest.dropLast() + "") == [nil])
        #expect(code(longest + "x") == [.limitExceeded])
        let texts = [
            nil: "Ana edited “Deck”", "en": "Ana edited “Deck”", "en-GB": "Ana edited “Deck”",
            "fr": "Ana edited “Deck”",
            "d": "Ana edited “Deck”", "den": "Ana edited “Deck”", "de": "Ana hat „Deck“ bearbeitet",
            "DE": "Ana hat „Deck“ bearbeitet", "de-CH-1996": "Ana hat „Deck“ bearbeitet",
        ]
        for (language, text) in texts {
            let page = try world.send(ReadNotices(.collaboration(collaboration), language: language))
            #expect(page.notices.map(\.sentence) == [text])
            let details = try world.send(ReadDetails(of: collaboration, language: language))
            #expect(details.recentActivity.map(\.sentence) == [text])
            let isGerman = text.contains("hat")
            #expect(details.manageButtonTitle == (isGerman ? "Geteilte Datei verwalten" : "Manage Shared File"))
        }
    }

    @Test("Only an empty page waits, for changes of exactly the topics that it reads")
    func waiting() throws {
        let collaboration = try world.start()
        let other = try world.start("other")
        let bo = try account("bo")
        try world.admit([person(2), person(3)], to: collaboration)
        try world.admit([person(2)], to: other)
        for place in [collaboration, other] { try world.send(LinkAccount(bo, to: person(2), in: place)) }
        func topics(_ feed: Feed, milliseconds: Int? = 500, after: UInt64 = 0) throws -> Set<Topic>? {
            let request = ReadNotices(feed, after: after, waitMilliseconds: milliseconds)
            guard case .wait(let topics, let time, let page) = try world.decide(request) else { return nil }
            #expect(time == milliseconds)
            #expect(page.notices.isEmpty && !page.hasMore && page.next == world.storage.sequence)
            return Set(topics)
        }
        let participant = Feed.participant(person(2), of: collaboration)
        #expect(try topics(.collaboration(collaboration)) == [.collaboration(collaboration)])
        #expect(try topics(participant) == [.collaboration(collaboration)])
        #expect(try topics(.account(bo)) == [.account(bo), .collaboration(collaboration), .collaboration(other)])
        #expect(try topics(.account(try account("cy"))) == [.account(try account("cy"))])
        #expect(try topics(participant, milliseconds: Limits.followMillisecondsMax) != nil)
        for milliseconds in [nil, 0] { #expect(try topics(participant, milliseconds: milliseconds) == nil) }
        try world.post([.mention(person: person(2))], by: person(1), on: collaboration)
        #expect(try topics(.collaboration(collaboration)) != nil, "nothing that this feed shows")
        #expect(try topics(.participant(person(3), of: collaboration)) != nil)
        #expect(try topics(participant) == nil)
        #expect(try topics(.account(bo)) == nil)
        #expect(try topics(participant, after: world.storage.sequence) != nil)
    }

    @Test("An empty page that left notices out doesn't wait while there are more")
    func emptyPage() throws {
        let collaboration = try world.start()
        for _ in 0..<3 { try world.post([.mention(person: person(1))], by: person(1), on: collaboration) }
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        let request = ReadNotices(.collaboration(collaboration), limit: 2, waitMilliseconds: 1000)
        guard case .answer(let page) = try world.decide(request) else {
            Issue.record("waits")
            return
        }
        #expect(page.notices.isEmpty && page.hasMore)
        let rest = try world.send(ReadNotices(.collaboration(collaboration), after: page.next, limit: 2))
        #expect(rest.notices.count == 1 && !rest.hasMore)
    }

    @Test("A page of no size or of too many notices is refused")
    func limits() throws {
        let feed = Feed.collaboration(try world.start())
        #expect(world.code(of: ReadNotices(feed, limit: 0)) == .malformedRequest)
        #expect(world.code(of: ReadNotices(feed, limit: Limits.noticesPerPageMax + 1)) == .limitExceeded)
        #expect(world.code(of: ReadNotices(feed, limit: Limits.noticesPerPageMax)) == nil)
    }

    @Test("A sequence that is not applied yet is behind-sequence, and the error says by how much")
    func behind() throws {
        let feed = Feed.collaboration(try world.start())
        let last = world.storage.sequence
        #expect(world.code(of: ReadNotices(feed, after: last, atLeast: last)) == nil)
        for request in [ReadNotices(feed, after: last + 3), ReadNotices(feed, atLeast: last + 3)] {
            let error = world.error(of: request)
            #expect(error?.code == .behindSequence && error?.detail == 3)
        }
        #expect(world.error(of: ReadNotices(feed, after: .max))?.detail == .max)
    }

    @Test("Pages that begin at the last one's next have every notice once")
    func paging() throws {
        try withSeeds(25) { generator, context in try follow(generator, context) }
    }

    /// One notice as its identifier and its collaboration tell it.
    private struct Told: Hashable {
        let collaboration: CollaborationIdentifier
        let identifier: String
        let event: HighlightEvent
    }

    /// Posts at random while feeds are followed in pages of random sizes, and compares what was read with everything
    /// that each feed must have shown.
    private func follow(_ seeded: SeededGenerator, _ context: Comment) throws {
        var generator = seeded
        let world = World()
        let bo = try account("bo")
        let people = (UInt8(1)...4).map { person($0) }
        let collaborations = try (0..<3).map { try world.start("deck \($0)") }
        for collaboration in collaborations { try world.admit(Array(people.dropFirst()), to: collaboration) }
        // The account takes part as two people in the first collaboration, as one in the second, in the third not.
        let links = [(0, 1), (0, 2), (1, 3)]
        for (place, number) in links {
            try world.send(LinkAccount(bo, to: people[number], in: collaborations[place]))
        }
        let feeds: [(feed: Feed, shows: (Int, HighlightEvent) -> Bool)] = [
            (.collaboration(collaborations[0]), { $0 == 0 && $1.onlyReader == nil }),
            (.participant(people[1], of: collaborations[0]), { $0 == 0 && ($1.onlyReader ?? people[1]) == people[1] }),
            (
                .account(bo),
                { place, event in
                    links.contains { $0.0 == place && (event.onlyReader ?? people[$0.1]) == people[$0.1] }
                }
            ),
        ]
        var expected = [[Told]](repeating: [], count: feeds.count)
        var read = expected
        var cursors = [UInt64](repeating: 0, count: feeds.count)
        func post() throws {
            let place = Int.random(in: 0..<3, using: &generator)
            let author = people[Int.random(in: 0..<4, using: &generator)]
            let events = (0..<Int.random(in: 1...5, using: &generator)).map { _ -> HighlightEvent in
                let someone = people[Int.random(in: 0..<4, using: &generator)]
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: return .mention(person: someone)
                case 1:
                    // The owner says whom he has added, and everybody else names nobody.
                    return .membership(trigger: .addedCollaborator, person: author == people[0] ? someone : nil)
                default: return .change(trigger: .edit)
                }
            }
            let sequence = try world.post(events, by: author, on: collaborations[place]).sequence ?? 0
            for (index, feed) in feeds.enumerated() {
                for (position, event) in events.enumerated() where feed.shows(place, event) {
                    expected[index].append(
                        Told(collaboration: collaborations[place], identifier: "\(sequence).\(position)", event: event))
                }
            }
        }
        func readPage(_ index: Int) throws -> Bool {
            let limit = Int.random(in: 1...12, using: &generator)
            let page = try world.send(ReadNotices(feeds[index].feed, after: cursors[index], limit: limit))
            #expect(page.notices.count < limit + 5, context)
            #expect(page.next > cursors[index] || !page.hasMore, context)
            read[index] += page.notices.map {
                Told(collaboration: $0.collaboration, identifier: $0.identifier, event: $0.event)
            }
            cursors[index] = page.next
            return page.hasMore
        }
        for _ in 0..<Int.random(in: 1...60, using: &generator) {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: _ = try readPage(Int.random(in: 0..<feeds.count, using: &generator))
            case 1: try world.send(CustomizeDetails(of: collaborations[0], title: .set("Deck \(generator.next())")))
            default: try post()
            }
        }
        for index in feeds.indices {
            var pages = 0
            while try readPage(index), pages < 1000 { pages += 1 }
            #expect(read[index] == expected[index], context)
        }
    }
}
