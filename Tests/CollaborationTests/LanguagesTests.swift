@testable import Collaboration
import Core
import Foundation
import Testing

@Suite("Languages")
struct LanguagesTests {
    private let world = World()

    /// A sentence as a reader gets it.
    private func text(
        _ sentence: Sentence, _ language: Language, author: String? = "Ana", person: String? = "Bo",
        title: String? = "Deck", isReader: Bool = false
    ) throws -> String {
        func inside(_ text: String?) throws -> ArraySlice<UInt8>? {
            try text.map { try JSON.encode($0).dropFirst().dropLast() }
        }
        var json = Array("\"".utf8)
        let names = Language.Names(
            author: try inside(author), person: try inside(person), title: try inside(title), isReader: isReader)
        language.append(sentence, names, to: &json)
        json.append(UInt8(ascii: "\""))
        return try JSON.decode(String.self, from: json)
    }

    /// What each language says, with a title and without.
    private static let english: [Sentence: (String, String)] = [
        .edited: ("Ana edited “Deck”", "Ana edited the shared content"),
        .commented: ("Ana commented in “Deck”", "Ana commented in the shared content"),
        .joined: ("Ana joined “Deck”", "Ana joined the shared content"),
        .left: ("Ana left “Deck”", "Ana left the shared content"),
        .added: ("Ana added Bo to “Deck”", "Ana added Bo to the shared content"),
        .removed: ("Ana removed Bo from “Deck”", "Ana removed Bo from the shared content"),
        .mentioned: ("Ana mentioned Bo in “Deck”", "Ana mentioned Bo in the shared content"),
        .created: ("Ana created “Deck”", "Ana created the shared content"),
        .deleted: ("Ana deleted “Deck”", "Ana deleted the shared content"),
        .renamed: ("Ana renamed “Deck”", "Ana renamed the shared content"),
        .moved: ("Ana moved “Deck”", "Ana moved the shared content"),
        .arrived: (
            "There is a new participant in “Deck”", "There is a new participant in the shared content"
        ),
        .departed: (
            "A participant no longer takes part in “Deck”", "A participant no longer takes part in the shared content"
        ),
    ]
    private static let german: [Sentence: (String, String)] = [
        .edited: ("Ana hat „Deck“ bearbeitet", "Ana hat den geteilten Inhalt bearbeitet"),
        .commented: ("Ana hat in „Deck“ kommentiert", "Ana hat im geteilten Inhalt kommentiert"),
        .joined: ("Ana ist „Deck“ beigetreten", "Ana ist dem geteilten Inhalt beigetreten"),
        .left: ("Ana hat „Deck“ verlassen", "Ana hat den geteilten Inhalt verlassen"),
        .added: ("Ana hat Bo zu „Deck“ hinzugefügt", "Ana hat Bo zum geteilten Inhalt hinzugefügt"),
        .removed: ("Ana hat Bo aus „Deck“ entfernt", "Ana hat Bo aus dem geteilten Inhalt entfernt"),
        .mentioned: ("Ana hat Bo in „Deck“ erwähnt", "Ana hat Bo im geteilten Inhalt erwähnt"),
        .created: ("Ana hat „Deck“ erstellt", "Ana hat den geteilten Inhalt erstellt"),
        .deleted: ("Ana hat „Deck“ gelöscht", "Ana hat den geteilten Inhalt gelöscht"),
        .renamed: ("Ana hat „Deck“ umbenannt", "Ana hat den geteilten Inhalt umbenannt"),
        .moved: ("Ana hat „Deck“ verschoben", "Ana hat den geteilten Inhalt verschoben"),
        .arrived: ("In „Deck“ ist jemand neu dabei", "Im geteilten Inhalt ist jemand neu dabei"),
        .departed: ("In „Deck“ ist jemand nicht mehr dabei", "Im geteilten Inhalt ist jemand nicht mehr dabei"),
    ]

    @Test("Every language has every sentence, for every kind of author, person, reader and title")
    func complete() throws {
        let tables = ["en": LanguagesTests.english, "de": LanguagesTests.german]
        #expect(Language.all.map(\.tag).sorted() == tables.keys.sorted())
        for language in Language.all {
            let table = try #require(tables[language.tag])
            #expect(table.count == Sentence.allCases.count)
            for sentence in Sentence.allCases {
                let (titled, untitled) = try #require(table[sentence])
                #expect(try text(sentence, language) == titled)
                #expect(try text(sentence, language, title: nil) == untitled)
                for (title, known) in [("Deck", titled), (nil, untitled)] {
                    let somebody = known.replacing("Ana", with: language.pronouns.author)
                    #expect(try text(sentence, language, author: nil, title: title) == somebody)
                    let you = known.replacing("Bo", with: language.pronouns.reader)
                    #expect(try text(sentence, language, title: title, isReader: true) == you)
                    #expect(try text(sentence, language, person: nil, title: title, isReader: true) == you)
                    let unknown = known.replacing("Bo", with: language.pronouns.person)
                    #expect(try text(sentence, language, person: nil, title: title) == unknown)
                }
                #expect(titled.utf8.count <= language.sentenceBytesMax + 3 + 2 + 4)
            }
        }
    }

    @Test("Names and titles are put in as they are, with quotes, braces and whatever else is in them")
    func oddNames() throws {
        let odd = #"{title} "\ /é{"#
        for language in Language.all {
            let known = try text(.mentioned, language)
            let expected = known.replacing("Ana", with: odd).replacing("Bo", with: odd).replacing("Deck", with: odd)
            #expect(try text(.mentioned, language, author: odd, person: odd, title: odd) == expected)
            #expect(language.summary(from: [odd, odd]).components(separatedBy: odd).count == 3)
        }
    }

    @Test("Every event has the sentence of its kind")
    func kinds() {
        typealias Kind = HighlightEvent.Kind
        let expected: [(Kind, Sentence)] = [
            (.change(trigger: .edit), .edited), (.change(trigger: .comment), .commented),
            (.membership(trigger: .addedCollaborator, person: person(1)), .joined),
            (.membership(trigger: .removedCollaborator, person: person(1)), .left),
            (.membership(trigger: .addedCollaborator, person: person(2)), .added),
            (.membership(trigger: .removedCollaborator, person: person(2)), .removed),
            (.membership(trigger: .addedCollaborator, person: nil), .arrived),
            (.membership(trigger: .removedCollaborator, person: nil), .departed),
            (.mention(person: person(1)), .mentioned), (.mention(person: person(2)), .mentioned),
            (.persistence(trigger: .created), .created), (.persistence(trigger: .deleted), .deleted),
            (.persistence(trigger: .renamed), .renamed), (.persistence(trigger: .moved), .moved),
        ]
        for (kind, sentence) in expected { #expect(Sentence(kind, by: person(1)) == sentence) }
        #expect(Set(expected.map(\.1)) == Set(Sentence.allCases))
    }

    @Test("An attribution view's texts have the reader's language, and the remove entry says “Remove” in it")
    func attribution() throws {
        let bo = try account("bo")
        let link = try url("https://a.example/1")
        try world.send(SetConsent(of: bo, .everything, isAllowed: true))
        for (number, name) in ["Ana", "Cy", "Di"].enumerated() {
            try world.send(
                RecordShare(
                    url: link, app: "app", sharer: Sharer(name: name),
                    conversation: Conversation(identifier: "c\(number)"), date: world.now - Double(number),
                    recipients: [ShareRecipient(bo)]))
            let told = try world.send(ReadAttribution(link, of: bo, for: .everyApp, language: "de"))
            #expect(told.summary == ["Von Ana", "Von Ana und Cy", "Von Ana und 2 weiteren"][number])
            #expect(told.menu.last?.title == "Entfernen" && told.menu.first?.title == "Antwort an Ana")
            let english = try world.send(ReadAttribution(link, of: bo, for: .everyApp, language: "fr"))
            #expect(english.summary == ["From Ana", "From Ana and Cy", "From Ana and 2 others"][number])
            #expect(english.menu.last?.title == "Remove" && english.menu.first?.title == "Reply to Ana")
        }
        func code(_ title: String, _ language: String?) -> ServiceError.Code? {
            world.code(of: ReadAttribution(link, of: bo, for: .everyApp, removeTitle: title, language: language))
        }
        for title in ["Aus der App entfernen", "Entferne das", "ENTFERNEN", "Wird entfernt"] {
            #expect(code(title, "de") == nil)
            #expect(
                try world.send(ReadAttribution(link, of: bo, for: .everyApp, removeTitle: title, language: "de")).menu
                    .last?.title
                    == title)
            for language in [nil, "en", "fr"] { #expect(code(title, language) == .malformedRequest) }
        }
        for title in ["Remove from App", "removed", "Ausblenden", ""] {
            #expect(code(title, "de") == .malformedRequest)
        }
        #expect(code("Remove from App", "en-US") == nil)
        #expect(code("Entfernen", "d_e") == .malformedRequest)
    }

    @Test("A language is a tag of at most 35 bytes, wherever a request takes one")
    func tags() throws {
        let bo = try account("bo")
        let collaboration = try world.start()
        func requests(_ tag: String) throws -> [any RuledRequest] {
            [
                ReadNotices(.collaboration(collaboration), language: tag), ReadNotices(.account(bo), language: tag),
                ReadDetails(of: collaboration, language: tag),
                ReadAttribution(try url("https://a.example/1"), of: bo, for: .everyApp, language: tag),
            ]
        }
        // Four subtags of eight bytes with their hyphens are 35 bytes.
        let longest = Array(repeating: "abcdefgh", count: 4).joined(separator: "-")
        #expect(longest.utf8.count == Limits.languageBytesMax)
        for request in try requests(longest) {
            let code = world.code(of: request)
            #expect(code == nil || code == .unknownHighlight, "\(request)")
        }
        for request in try requests(longest + "a") {
            let error = world.error(of: request)
            #expect(error?.code == .limitExceeded && error?.detail == UInt32(Limits.languageBytesMax), "\(request)")
        }
        for tag in ["", "d_e", "-de", "de-", "abcdefghi", "dé"] {
            for request in try requests(tag) { #expect(world.code(of: request) == .malformedRequest, "\(request)") }
        }
    }
}
