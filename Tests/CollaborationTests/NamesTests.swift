import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// Texts for people, which some other person's terminal or app shows.
@Suite("Names and titles")
struct NamesTests {
    private let world = World()

    private static let controls: [Unicode.Scalar] = [
        "\u{0}", "\u{7}", "\n", "\r", "\t", "\u{1b}", "\u{1f}", "\u{7f}", "\u{80}", "\u{9b}", "\u{9f}", "\u{2028}",
        "\u{2029}", "\u{202a}", "\u{202e}", "\u{2066}", "\u{2069}",
    ]

    /// Checks that a request is refused when a text in it has a control character, with a reason that names the field.
    private func refuses(_ field: String, _ request: (String) throws -> any RuledRequest) throws {
        for control in Self.controls {
            let error = world.error(of: try request("a\(Character(control))b"))
            #expect(error?.code == .malformedRequest, "\(field), U+\(control.hexadecimalDigits)")
            let reason = "\(field) contains the control character U+\(control.hexadecimalDigits)"
            #expect(error?.reason == reason, "\(error?.reason ?? "it was accepted")")
        }
        for text in ["a b", "é🗝", "Ana\u{200d}", "\u{a0}", "שלום"] {
            #expect(world.error(of: try request(text))?.reason.contains("control character") != true, "\(field)")
        }
    }

    @Test("Names and titles have no control characters, and a refusal names the field and its place")
    func names() throws {
        let collaboration = try world.start()
        let token = InvitationToken.random()
        try world.send(CreateInvitation(to: collaboration, token: token))
        let ana = try account("ana")
        try refuses("participants[1].displayName") { text in
            AddParticipants(
                [NewParticipant(person(8)), NewParticipant(person(9), displayName: text)], to: collaboration)
        }
        try refuses("displayName") { AcceptInvitation(token, for: ana, identity: person(7), displayName: $0) }
        try refuses("title") { CustomizeDetails(of: collaboration, title: .set($0)) }
        try refuses("manageButtonTitle") { CustomizeDetails(of: collaboration, manageButtonTitle: .set($0)) }
        try refuses("customItems[0].title") { text in
            CustomizeDetails(of: collaboration, customItems: .set([CustomItem(identifier: "a", title: text)]))
        }
        try refuses("customItems[0].subtitle") { text in
            CustomizeDetails(
                of: collaboration, customItems: .set([CustomItem(identifier: "a", title: "", subtitle: text)]))
        }
    }

    @Test("What is shared has no control characters in its texts")
    func shares() throws {
        let (ana, link) = (try account("ana"), try url("https://a.example/b"))
        func share(
            title: String? = nil, name: String = "Bo", avatar: String? = nil, conversation: String? = nil
        ) -> RecordShare {
            RecordShare(
                url: link, title: title, app: "app", sharer: Sharer(name: name, avatar: avatar),
                conversation: Conversation(identifier: "c", name: conversation), recipients: [ShareRecipient(ana)])
        }
        try refuses("title") { share(title: $0) }
        try refuses("sharer.name") { share(name: $0) }
        try refuses("sharer.avatar") { share(avatar: $0) }
        try refuses("conversation.name") { share(conversation: $0) }
        try refuses("removeTitle") { ReadAttribution(link, of: ana, for: .everyApp, removeTitle: "Remove " + $0) }
    }

    @Test("A collaboration starts without control characters in its texts")
    func starts() throws {
        func metadata(_ change: (inout CollaborationMetadata) -> Void) throws -> PrepareCollaboration {
            var metadata = CollaborationMetadata(
                localIdentifier: LocalCollaborationIdentifier(rawValue: UUID().uuidString))
            change(&metadata)
            return PrepareCollaboration(owner: try account("ana"), metadata: metadata)
        }
        func options(_ group: OptionsGroup, summary: String? = nil) -> ShareOptions {
            ShareOptions(optionsGroups: [group], summary: summary)
        }
        try refuses("metadata.title") { text in try metadata { $0.title = text } }
        try refuses("metadata.initiatorHandle") { text in try metadata { $0.initiatorHandle = text } }
        try refuses("metadata.initiatorNameComponents.familyName") { text in
            try metadata { $0.initiatorNameComponents = NameComponents(familyName: text, nickname: "N") }
        }
        try refuses("metadata.defaultShareOptions.givenSummary") { text in
            try metadata { $0.defaultShareOptions = options(OptionsGroup(identifier: "g", options: []), summary: text) }
        }
        try refuses("metadata.userSelectedShareOptions.groups[0].footer") { text in
            try metadata { metadata in
                metadata.userSelectedShareOptions = options(
                    OptionsGroup(identifier: "g", footer: text, options: []))
            }
        }
        try refuses("metadata.defaultShareOptions.groups[0].options[1].subtitle") { text in
            try metadata { metadata in
                let option = [
                    CollaborationOption(title: "A", identifier: "a"),
                    CollaborationOption(title: "B", subtitle: text, identifier: "b"),
                ]
                metadata.defaultShareOptions = options(OptionsGroup(identifier: "g", options: option))
            }
        }
        try refuses("ownerName") { text in
            PrepareCollaboration(
                owner: try account("ana"),
                metadata: CollaborationMetadata(
                    localIdentifier: LocalCollaborationIdentifier(rawValue: UUID().uuidString)),
                ownerIdentity: person(1), ownerName: text)
        }
    }
}
