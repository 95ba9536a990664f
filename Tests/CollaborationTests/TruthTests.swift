@testable import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// An answer never says what is not so.
@Suite("Answers say what is so")
struct TruthTests {
    private let world = World()

    private func token(_ number: UInt8) -> InvitationToken {
        InvitationToken(bytes: [UInt8](repeating: number, count: 16))
    }

    private func picker(_ titles: String..., effects: [OptionEffect] = []) -> ShareOptions {
        ShareOptions(optionsGroups: [
            OptionsPickerGroup(
                identifier: "access",
                options: titles.map { CollaborationOption(title: $0, identifier: "o\($0)", effects: effects) })
        ])
    }

    @Test("A pick decides the permission by its effect, and its title is the app's word in the summary")
    func titlesWithoutEffect() throws {
        // Apple's sample: a title that says something, and no effect. The app's words stay as they are.
        let sample = picker("Read only", "Can make changes")
        #expect(sample.summary(for: .readWrite) == "Read only")
        #expect(sample.permission == nil)
        // With an effect the title is told only while the effect holds.
        let effective = picker("Read only", effects: [.readOnly])
        #expect(effective.permission == .readOnly)
        #expect(effective.summary(for: .readOnly) == "Read only")
        #expect(effective.summary(for: .readWrite) == "Only invited people can make changes")
    }

    @Test("A choice of options is refused when the default permission that it counts on is another one")
    func defaultPermissionOfAChoice() throws {
        let collaboration = try world.start(options: picker("a", "b"), defaultPermission: .readWrite)
        func prepare(
            _ permission: Permission?, selecting option: String? = "ob", options: ShareOptions? = nil
        ) throws -> PrepareCollaboration {
            var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
            metadata.defaultPermission = permission
            metadata.userSelectedShareOptions = options
            return PrepareCollaboration(
                owner: try account("ana"), metadata: metadata, selectedOptions: option.map { [$0] })
        }
        let refused = world.error(of: try prepare(.readOnly))
        #expect(refused?.code == .collaborationExists && refused?.reason.contains("readWrite") == true)
        #expect(try world.send(ReadDetails(of: collaboration)).shareOptions.selectedIdentifiers == ["oa"])
        #expect(try world.send(try prepare(nil)).permission == .readWrite)
        #expect(try world.send(try prepare(.readWrite, selecting: "oa")).permission == .readWrite)
        // Without a choice the request changes nothing, and its answer tells what holds.
        #expect(try world.send(try prepare(.readOnly, selecting: nil)).permission == .readWrite)
        // Where an option says the permission, the default does not count.
        let effective = picker("Read only", effects: [.readOnly])
        #expect(try world.send(try prepare(.readWrite, selecting: nil, options: effective)).permission == .readOnly)
    }

    @Test("A blank name of the initiator is none")
    func blankInitiator() throws {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        metadata.initiatorNameComponents = NameComponents(givenName: " ", familyName: "\u{3000}")
        let start = PrepareCollaboration(owner: try account("ana"), metadata: metadata, ownerName: "Ana")
        #expect(try world.send(start).highlight.initiatorName == "Ana")
        metadata.localIdentifier = LocalCollaborationIdentifier(rawValue: "other")
        let nameless = PrepareCollaboration(owner: try account("ana"), metadata: metadata, ownerName: " ")
        #expect(try world.send(nameless).highlight.initiatorName == nil)
    }

    @Test("Blank titles and blank summaries are none")
    func blankSummaries() throws {
        #expect(picker("", "b").summary(for: .readOnly) == "Only invited people can view")
        #expect(picker(" \u{3000}").summary(for: .readWrite) == "Only invited people can make changes")
        var options = picker("Edit")
        options.groups += picker("").groups
        #expect(options.summary(for: .readOnly) == "Edit", "only the titles that there are")
        options.givenSummary = " "
        #expect(options.summary(for: .readOnly) == "Edit")
        let collaboration = try world.start(options: .deck)
        for blank in ["", " "] {
            let receipt = try world.send(UpdateShareOptions(collaboration, givenSummary: blank))
            #expect(receipt.changed == 0, "there was no summary")
        }
        try world.send(UpdateShareOptions(collaboration, givenSummary: "Editors"))
        #expect(try world.send(UpdateShareOptions(collaboration, givenSummary: "")).changed == 1)
        #expect(try world.send(FindHighlight(collaboration)).summary == "Can make changes")
    }

    @Test("Groups of options and items of the popover have identifiers of their own")
    func twins() throws {
        var options = picker("a")
        options.groups.append(.switches(OptionsGroup(identifier: "access", options: [])))
        #expect(thrownServiceError { try options.check() }?.code == .optionConflict)
        let collaboration = try world.start()
        #expect(
            world.code(of: UpdateShareOptions(collaboration, replacing: options)) == .optionConflict)
        let items = [CustomItem(identifier: "a", title: "A"), CustomItem(identifier: "a", title: "B")]
        let error = world.error(of: CustomizeDetails(of: collaboration, customItems: .set(items)))
        #expect(error?.code == .malformedRequest && error?.reason.contains("customItems[1].identifier") == true)
        #expect(world.code(of: CustomizeDetails(of: collaboration, customItems: .set([items[0]]))) == nil)
    }

    // MARK: Who invites

    @Test("After a hand-over the inviter is the new owner, and the initiator's data are the initiator's")
    func invitersAfterHandOver() throws {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck"))
        metadata.initiatorHandle = "ana@example.com"
        let (ana, bo) = (try account("ana"), try account("bo"))
        let collaboration = try world.send(
            PrepareCollaboration(owner: ana, metadata: metadata, ownerIdentity: person(1), ownerName: "Ana")
        ).collaborationIdentifier
        try world.send(AddParticipants([NewParticipant(person(2), displayName: "Bo")], to: collaboration))
        for number: UInt8 in [1, 2] { try world.join(person(number), in: collaboration) }
        try world.send(LinkAccount(ana, to: person(1), in: collaboration))
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        var number: UInt8 = 0
        func inviter(_ given: Inviter?) throws -> Inviter? {
            number += 1
            return try world.send(CreateInvitation(to: collaboration, token: token(number), inviter: given)).inviter
        }
        let initiator = Inviter(name: "Ana", handle: "ana@example.com")
        #expect(try inviter(nil) == initiator)
        try world.send(TransferOwnership(of: collaboration, from: ana, to: person(2)))
        #expect(try inviter(nil) == Inviter(name: "Bo"))
        #expect(try inviter(Inviter(account: bo)) == Inviter(account: bo, name: "Bo"))
        #expect(try inviter(Inviter(account: ana)) == Inviter(account: ana, name: "Ana", handle: "ana@example.com"))
        try world.send(LinkAccount(nil, to: person(2), in: collaboration))
        #expect(try inviter(Inviter(account: bo)) == Inviter(account: bo, name: "Bo"), "the owner needs no link")
        try world.send(LinkAccount(bo, to: person(2), in: collaboration))
        try world.send(TransferOwnership(of: collaboration, from: bo, to: person(1)))
        #expect(try inviter(nil) == initiator, "and back")
    }

    // MARK: Invitations

    /// Options that let people join by invitations until they are deselected.
    private static let joinByLink = ShareOptions(optionsGroups: [
        OptionsGroup(
            identifier: "who",
            options: [
                CollaborationOption(title: "Link", identifier: "link", isSelected: true, effects: [.joinByInvitation])
            ])
    ])

    @Test("A repeated createInvitation is answered as the first one after the options have closed")
    func repeatedWhenClosed() throws {
        let collaboration = try world.start(options: Self.joinByLink)
        let first = try world.send(CreateInvitation(to: collaboration, token: token(1)))
        try world.send(UpdateShareOptions(collaboration, selectedOptions: []))
        #expect(try world.send(CreateInvitation(to: collaboration, token: token(1))) == first)
        #expect(world.code(of: CreateInvitation(to: collaboration, token: token(2))) == .notPermitted)
    }

    @Test("An acceptance is decided again when the options close at the same time")
    func staleAcceptance() throws {
        let collaboration = try world.start(options: Self.joinByLink)
        try world.send(CreateInvitation(to: collaboration, token: token(1)))
        try world.admit([person(3)], to: collaboration)
        let bo = try account("bo")
        let edits = try [nil, person(2), person(3)].map {
            try world.edit(AcceptInvitation(token(1), for: bo, identity: $0))
        }
        try world.send(UpdateShareOptions(collaboration, selectedOptions: []))
        for edit in edits { #expect(try world.isStale(edit)) }
    }

    // MARK: Notices

    @Test("A membership event that names nobody says nothing of its author, as in Apple's sample")
    func withoutPerson() throws {
        let collaboration = try world.start()
        try world.send(AddParticipants([NewParticipant(person(2), displayName: "Bo")], to: collaboration))
        try world.join(person(2), in: collaboration)
        let events: [HighlightEvent] = [
            .membership(trigger: .addedCollaborator, person: nil),
            .membership(trigger: .removedCollaborator, person: nil),
        ]
        try world.post(events, by: person(2), on: collaboration)
        let told = try world.send(ReadNotices(.collaboration(collaboration))).notices.map(\.sentence)
        #expect(
            told == ["There is a new participant in “Deck”", "A participant no longer takes part in “Deck”"])
    }

    /// What a membership event about 3 is answered with, when that author posts it.
    private func code(
        _ trigger: HighlightEvent.Membership, _ number: UInt8, by author: UInt8,
        _ collaboration: CollaborationIdentifier
    ) throws -> ServiceError.Code? {
        world.code(
            of: PostNotices(
                [.membership(trigger: trigger, person: person(number))], on: collaboration,
                by: try world.grant(person(author), in: collaboration)))
    }

    @Test("Only who has added or removed somebody, or may manage it, says so")
    func whoAdded() throws {
        let collaboration = try world.start()
        try world.admit([person(2), person(4)], to: collaboration)
        try world.admit([person(3)], to: collaboration, permission: .readOnly)
        #expect(try code(.addedCollaborator, 2, by: 1, collaboration) == nil, "the owner may add")
        #expect(try code(.addedCollaborator, 2, by: 3, collaboration) == .notPermitted, "a member may not")
        #expect(try code(.addedCollaborator, 1, by: 3, collaboration) == .notPermitted, "nobody adds the owner")
        try world.send(UpdateParticipant(ParticipantChange(person(4), role: .administrator), in: collaboration))
        #expect(try code(.addedCollaborator, 1, by: 4, collaboration) == .notPermitted, "nobody adds the owner")
        #expect(try code(.addedCollaborator, 2, by: 4, collaboration) == nil)
        let grant = try world.grant(person(4), in: collaboration)
        try world.send(AddParticipants([NewParticipant(person(5))], to: collaboration, by: grant))
        #expect(try code(.addedCollaborator, 5, by: 4, collaboration) == nil)
        #expect(try code(.addedCollaborator, 5, by: 1, collaboration) == .notPermitted, "somebody else has added him")
        // 2 leaves by himself, 3 is removed by the administrator, 5 by the backend.
        try world.send(
            RemoveParticipants([person(2)], from: collaboration, by: try world.grant(person(2), in: collaboration)))
        try world.send(
            RemoveParticipants([person(3)], from: collaboration, by: try world.grant(person(4), in: collaboration)))
        try world.send(RemoveParticipants([person(5)], from: collaboration))
        try world.admit([person(6)], to: collaboration)
        for (number, author, expected): (UInt8, UInt8, ServiceError.Code?) in [
            (2, 1, .notPermitted), (2, 4, .notPermitted), (3, 1, .notPermitted), (3, 4, nil), (5, 1, nil), (5, 4, nil),
            (5, 6, .notPermitted),
        ] {
            #expect(
                try code(.removedCollaborator, number, by: author, collaboration) == expected, "\(number) \(author)")
        }
    }

    @Test("Members say that they have added somebody while the options let them, and the post depends on the options")
    func membersWhoAdd() throws {
        let options = ShareOptions(optionsGroups: [
            OptionsGroup(
                identifier: "more",
                options: [
                    CollaborationOption(
                        title: "Add", identifier: "add", isSelected: true, effects: [.addParticipants])
                ])
        ])
        let collaboration = try world.start(options: options)
        try world.admit([person(2), person(3)], to: collaboration)
        let event = HighlightEvent.membership(trigger: .addedCollaborator, person: person(3))
        let post = PostNotices([event], on: collaboration, by: try world.grant(person(2), in: collaboration))
        let edit = try world.edit(post)
        try world.send(UpdateShareOptions(collaboration, selectedOptions: []))
        #expect(try world.isStale(edit))
        #expect(try code(.addedCollaborator, 3, by: 2, collaboration) == .notPermitted)
    }

    @Test("A blank name or title is none in a sentence")
    func blankNames() throws {
        let collaboration = try world.start(title: "")
        try world.send(UpdateParticipant(ParticipantChange(person(1), displayName: .set(" ")), in: collaboration))
        try world.post([.change(trigger: .edit)], by: person(1), on: collaboration)
        let told = try world.send(ReadNotices(.collaboration(collaboration))).notices.map(\.sentence)
        #expect(told == ["Somebody edited the shared content"])
    }

    // MARK: Names and numbers

    @Test("Names have none of the control characters that texts don't have")
    func names() throws {
        for control in ["\u{0}", "\n", "\u{7f}", "\u{85}", "\u{9b}", "\u{2028}", "\u{202e}", "\u{2066}"] {
            #expect(Account("a\(control)b") == nil)
            #expect(thrownServiceError { try checkName("a\(control)b", "app") }?.code == .malformedRequest)
        }
        for name in ["a", "é", "a b", String(repeating: "a", count: 128)] { #expect(Account(name) != nil) }
        for name in ["", String(repeating: "a", count: 129)] { #expect(Account(name) == nil) }
    }

    @Test("The word for removing is a word of the title, and no part of another one")
    func removeWords() throws {
        let (english, german) = (Language.of("en"), Language.of("de"))
        for title in ["Remove", "REMOVE from Reader", "(remove)", "Please remove: now", "a-remove"] {
            #expect(english.saysRemove(title), "\(title)")
        }
        for title in ["unremovedable", "removed", "Removal", ""] { #expect(!english.saysRemove(title), "\(title)") }
        #expect(german.saysRemove("Aus Reader entfernen") && german.saysRemove("Entfernt das"))
        #expect(!german.saysRemove("unentfernbar") && !german.saysRemove("Entfernung"))
    }

    @Test("A number of the wrong form is told so, without the range of its type")
    func numbers() throws {
        for (limit, said) in [
            ("2.0", "whole number"), ("1e2", "whole number"), ("\"5\"", "whole number"),
            ("99999999999999999999", "too large"), ("-99999999999999999999", "too small"),
        ] {
            let json = #"{"account":"bo","scope":"shared","limit":\#(limit)}"#
            let error = thrownServiceError { _ = try Requests.parse("listShares", Array(json.utf8)) }
            #expect(error?.code == .malformedRequest && error?.reason.contains("limit is not") == true, "\(limit)")
            #expect(error?.reason.contains(said) == true && error?.reason.contains("9223372036854775808") == false)
        }
    }
}
