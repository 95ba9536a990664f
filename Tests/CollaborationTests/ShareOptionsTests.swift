import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Share options")
struct ShareOptionsTests {
    /// The error, when its reason names all of `names`.
    private func refusal(
        _ code: ServiceError.Code, naming names: [String], _ location: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) {
        let error = thrownServiceError(body)
        #expect(error?.code == code, sourceLocation: location)
        for name in names {
            #expect(error?.reason.contains("“\(name)”") == true, "\(error?.reason ?? "")", sourceLocation: location)
        }
    }

    private func switches(_ options: [CollaborationOption]) -> ShareOptions {
        ShareOptions(optionsGroups: [OptionsGroup(identifier: "switches", options: options)])
    }

    @Test("Two picks in one group are a conflict that names both")
    func twoPicks() {
        refusal(.optionConflict, naming: ["edit", "view"]) { _ = try ShareOptions.deck.selecting(["view", "edit"]) }
    }

    @Test("No pick in a group is a conflict that names the group")
    func noPick() {
        refusal(.optionConflict, naming: ["access"]) { _ = try ShareOptions.deck.selecting(["comments"]) }
        let empty = ShareOptions(optionsGroups: [OptionsPickerGroup(identifier: "nothing", options: [])])
        refusal(.optionConflict, naming: ["nothing"]) { try empty.check() }
    }

    @Test("A choice that is no option is unknown and named")
    func unknown() {
        refusal(.unknownOption, naming: ["fly"]) { _ = try ShareOptions.deck.selecting(["edit", "fly"]) }
        refusal(.unknownOption, naming: ["edit"]) { _ = try ShareOptions(optionsGroups: []).selecting(["edit"]) }
    }

    @Test("Two options of one identifier are a conflict that names it, in one group or in two")
    func duplicates() {
        let option = CollaborationOption(title: "Twice", identifier: "twice")
        refusal(.optionConflict, naming: ["twice"]) { try switches([option, option]).check() }
        let apart = ShareOptions(optionsGroups: [
            OptionsGroup(identifier: "a", options: [option]), OptionsPickerGroup(identifier: "b", options: [option]),
        ])
        refusal(.optionConflict, naming: ["twice"]) { try apart.check() }
    }

    @Test("An option whose requirement is not selected is refused with both names")
    func missingRequirement() throws {
        refusal(.optionRequired, naming: ["reactions", "comments"]) {
            _ = try ShareOptions.deck.selecting(["edit", "reactions"])
        }
        let chosen = try ShareOptions.deck.selecting(["edit", "comments", "reactions"])
        #expect(chosen.selectedIdentifiers == ["edit", "comments", "reactions"])
    }

    @Test("A requirement in another group counts")
    func requirementAcrossGroups() throws {
        let extra = CollaborationOption(title: "Rename", identifier: "rename", requiredOptionsIdentifiers: ["edit"])
        var options = ShareOptions.deck
        options.groups.append(.switches(OptionsGroup(identifier: "more", options: [extra])))
        refusal(.optionRequired, naming: ["rename", "edit"]) { _ = try options.selecting(["view", "rename"]) }
        #expect(try options.selecting(["edit", "rename"]).selectedIdentifiers == ["edit", "rename"])
    }

    @Test("A requirement that is no option is unknown, even of an option that is not selected")
    func strangeRequirement() {
        for isSelected in [false, true] {
            let option = CollaborationOption(
                title: "Odd", identifier: "odd", isSelected: isSelected, requiredOptionsIdentifiers: ["ghost"])
            refusal(.unknownOption, naming: ["odd", "ghost"]) { try switches([option]).check() }
        }
    }

    @Test("Selecting selects exactly those options, in whatever order and however often they are named")
    func selecting() throws {
        let chosen = try ShareOptions.deck.selecting(["comments", "view", "comments"])
        #expect(chosen.selectedIdentifiers == ["view", "comments"])
        #expect(try chosen.selecting(["edit"]).selectedIdentifiers == ["edit"])
        #expect(try chosen.selecting(["edit"]) == ShareOptions.deck)
    }

    @Test("A picker selects its first option when none is selected, and keeps one that is")
    func pickerDefault() {
        let options = ["a", "b", "c"].map { CollaborationOption(title: $0, identifier: $0) }
        #expect(
            OptionsPickerGroup(identifier: "p", options: options).options.map(\.isSelected) == [true, false, false])
        var second = options
        second[1].isSelected = true
        #expect(OptionsPickerGroup(identifier: "p", options: second).options.map(\.isSelected) == [false, true, false])
        #expect(OptionsGroup(identifier: "s", options: options).options.allSatisfy { !$0.isSelected })
        #expect(OptionsPickerGroup(identifier: "p", options: []).options.isEmpty)
    }

    @Test("A picker selects one option and no other, and nothing for a stranger")
    func pickerSelect() {
        let options = ["a", "b", "c"].map { CollaborationOption(title: $0, identifier: $0) }
        var picker = OptionsPickerGroup(identifier: "p", options: options)
        picker.select("c")
        #expect(picker.options.filter(\.isSelected).map(\.identifier) == ["c"])
        picker.select("d")
        #expect(picker.options.filter(\.isSelected).map(\.identifier) == ["c"])
    }

    @Test("The summary is what was given, or else what the pickers stand on, or else what the permission means")
    func summary() throws {
        var options = ShareOptions.deck
        #expect(options.summary(for: .readWrite) == "Can make changes")
        #expect(options.summary(for: .readOnly) == "Only invited people can view", "a switch overrules the picker")
        #expect(try options.selecting(["view", "comments"]).summary(for: .readOnly) == "View only")
        let second = OptionsPickerGroup(
            identifier: "who", options: [CollaborationOption(title: "Anyone with the link", identifier: "anyone")])
        options.groups.append(.picker(second))
        #expect(options.summary(for: .readWrite) == "Can make changes, Anyone with the link")
        options.givenSummary = "As agreed"
        #expect(options.summary(for: .readWrite) == "As agreed")
        options.givenSummary = ""
        #expect(options.summary(for: .readWrite) == "Can make changes, Anyone with the link")
        #expect(
            ShareOptions(optionsGroups: []).summary(for: .readWrite) == "Only invited people can make changes")
        let view = CollaborationOption(title: "View", identifier: "v", isSelected: true, effects: [.readOnly])
        #expect(switches([view]).summary(for: .readOnly) == "Only invited people can view")
    }

    @Test("A given summary goes with its selection: another selection drops it")
    func givenSummary() throws {
        var options = ShareOptions.deck
        options.givenSummary = "As agreed"
        #expect(try options.selecting(["edit"]).givenSummary == "As agreed")
        #expect(try options.selecting(["view"]).givenSummary == nil)
        #expect(try options.selecting(["view"]).selecting(["edit"]).givenSummary == nil)
    }

    @Test("Selected options permit what they say, the less where two contradict, and nothing where none says anything")
    func permission() throws {
        #expect(ShareOptions(optionsGroups: []).permission == nil)
        #expect(ShareOptions.deck.permission == .readWrite)
        #expect(try ShareOptions.deck.selecting(["view", "comments"]).permission == .readOnly)
        let readOnly = CollaborationOption(title: "1", identifier: "1", isSelected: true, effects: [.readOnly])
        let readWrite = CollaborationOption(title: "2", identifier: "2", isSelected: true, effects: [.readWrite])
        let silent = CollaborationOption(title: "3", identifier: "3", isSelected: true)
        #expect(switches([readWrite, readOnly, silent]).permission == .readOnly)
        #expect(switches([readOnly, readWrite, silent]).permission == .readOnly)
        #expect(switches([readWrite, silent]).permission == .readWrite)
        var off = readWrite
        off.isSelected = false
        #expect(switches([readOnly, off]).permission == .readOnly)
        #expect(switches([silent, off]).permission == nil)
    }

    @Test("An action is allowed while an option with its effect is selected, and open where no option is about it")
    func effects() throws {
        let mayComment = CollaborationOption(title: "1", identifier: "1", isSelected: true, effects: [.comment])
        var mayMention = CollaborationOption(title: "2", identifier: "2", effects: [.mention, .comment])
        #expect(switches([mayComment, mayMention]).allows(.comment) == true)
        #expect(switches([mayComment, mayMention]).allows(.mention) == false)
        #expect(switches([mayMention]).allows(.comment) == false)
        mayMention.isSelected = true
        #expect(switches([mayMention]).allows(.mention) == true)
        #expect(switches([mayMention]).allows(.addParticipants) == nil)
    }

    @Test("An option needs a title and an identifier; what else is left out selects nothing and permits nothing")
    func shortOption() throws {
        let option = try JSON.decode(CollaborationOption.self, from: Array(#"{"title":"a","identifier":"b"}"#.utf8))
        #expect(option == CollaborationOption(title: "a", identifier: "b"))
        #expect(!option.isSelected && option.effects.isEmpty)
        for json in [#"{"title":"a"}"#, #"{"identifier":"b"}"#, #"{"title":"a","identifier":"b","effects":["fly"]}"#] {
            #expect(throws: ServiceError(.malformedRequest, "")) {
                try JSON.decode(CollaborationOption.self, from: Array(json.utf8))
            }
        }
    }

    @Test("Both kinds of groups come back from JSON as they were, and another kind is refused")
    func coding() throws {
        var options = try ShareOptions.deck.selecting(["view", "comments"])
        options.givenSummary = "As agreed"
        #expect(try travelled(options) == options)
        let text = String(decoding: try JSON.encode(options), as: UTF8.self)
        #expect(text.contains(#""kind":"picker""#) && text.contains(#""kind":"switches""#))
        let strange = text.replacingOccurrences(of: #""kind":"picker""#, with: #""kind":"dial""#)
        #expect(
            thrownServiceError { _ = try JSON.decode(ShareOptions.self, from: Array(strange.utf8)) }?.code
                == .malformedRequest)
        #expect(options.optionsGroups.map(\.identifier) == ["access", "extras"])
    }

    @Test("Group options can be replaced through the group of either kind")
    func replacing() {
        for group in ShareOptions.deck.groups {
            var changed = group
            changed.options = [CollaborationOption(title: "New", identifier: "new")]
            #expect(changed.content.options.map(\.identifier) == ["new"])
            #expect(changed.content.title == group.content.title)
        }
    }
}

@Suite("Collaboration metadata")
struct CollaborationMetadataTests {
    private var metadata: CollaborationMetadata {
        var metadata = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck-7"))
        metadata.title = "Plans"
        metadata.initiatorHandle = "ana@example.com"
        metadata.initiatorNameComponents = NameComponents(givenName: "Ana", familyName: "Lopes")
        metadata.defaultShareOptions = .deck
        return metadata
    }

    @Test("Representations are JSON, the copy if there is one, and plain text")
    func representations() throws {
        let copy = CollaborationMetadata.FileCopy(
            name: "Plans.key", typeIdentifier: "com.example.deck", content: Data([1, 2]))
        let link = try url("https://decks.example/c/x")
        let all = try metadata.representations(link: link, copy: copy)
        #expect(all.map(\.typeIdentifier) == ["public.json", "com.example.deck", "public.utf8-plain-text"])
        #expect(all.map(\.mediaType) == ["application/json", nil, "text/plain; charset=utf-8"])
        #expect(all.map(\.fileName) == ["Plans.json", "Plans.key", "Plans.txt"])
        #expect(all[1].content == Data([1, 2]))
        #expect(String(decoding: all[2].content, as: UTF8.self) == "Plans\nCan make changes\nhttps://decks.example/c/x")
        #expect(try CollaborationMetadata(json: all[0].content) == metadata)
    }

    @Test("Without copy, link, options and title there are still JSON and text")
    func bareRepresentations() throws {
        let bare = CollaborationMetadata(localIdentifier: LocalCollaborationIdentifier(rawValue: "deck-7"))
        let all = try bare.representations()
        #expect(all.map(\.fileName) == ["deck-7.json", "deck-7.txt"])
        #expect(String(decoding: all[1].content, as: UTF8.self) == "Shared content")
        #expect(try CollaborationMetadata(json: all[0].content) == bare)
    }

    @Test("File names are without what file systems don't take")
    func fileNames() throws {
        var metadata = metadata
        for (title, name) in [
            ("a/b\\c:d", "a-b-c-d.json"), ("line\nbreak", "line-break.json"), (".hidden", "Shared content.json"),
            ("", "Shared content.json"), ("Ünïcode 🗝", "Ünïcode 🗝.json"),
        ] {
            metadata.title = title
            #expect(try metadata.representations().first?.fileName == name)
        }
    }

    @Test("Chosen options count before default ones")
    func options() throws {
        var metadata = metadata
        #expect(metadata.shareOptions == .deck)
        metadata.userSelectedShareOptions = try ShareOptions.deck.selecting(["view"])
        #expect(metadata.shareOptions?.permission == .readOnly)
        #expect(try travelled(metadata) == metadata)
    }

    @Test("JSON that is no metadata is a malformed request")
    func malformed() {
        for text in ["", "[]", "{}", #"{"title":"Plans"}"#, #"{"localIdentifier":7}"#] {
            let error = thrownServiceError { _ = try CollaborationMetadata(json: Data(text.utf8)) }
            #expect(error?.code == .malformedRequest, "\(text)")
        }
    }

    @Test("A name is the nickname, or else the given and the family name")
    func names() {
        #expect(NameComponents(givenName: "Ana", familyName: "Lopes").formatted == "Ana Lopes")
        #expect(NameComponents(givenName: "Ana", familyName: "Lopes", nickname: "Nini").formatted == "Nini")
        #expect(NameComponents(familyName: "Lopes").formatted == "Lopes")
        #expect(NameComponents().formatted == "")
    }
}
