import Core

/// The texts that the service makes for people, in one language. `{author}`, `{person}`, `{title}`, `{name}`, `{other}`
/// and `{count}` in a template stand for what is put there.
struct Language: Sendable {
    /// How a sentence is written when the content has a title, and when it has none.
    struct Wording: Sendable {
        let titled: String
        let untitled: String

        init(_ titled: String, untitled: String) {
            self.titled = titled
            self.untitled = untitled
        }
    }

    /// The words for people whose names are not put into a sentence.
    struct Pronouns: Sendable {
        /// An author and a person whose names are not known.
        let author: String
        let person: String
        /// The reader, as the person whom the event names.
        let reader: String
    }

    /// The texts of an attribution view.
    struct Attribution: Sendable {
        /// The title of the menu's entry that removes an item.
        let remove: String
        /// The forms of the word of which the app's own title of that entry contains one, in lower case.
        let removeWords: [String]
        let reply: String
        /// The title of an entry that replies, for an app, which does not learn to whom.
        let plainReply: String
        /// Who shared an item: one person, two, or more.
        let fromOne: String
        let fromTwo: String
        let fromMany: String
    }

    /// A part of a template that was read once.
    private enum Part: Sendable {
        case text([UInt8])
        case author, person, title
    }

    /// BCP 47, in lower case.
    let tag: String
    let wording: @Sendable (Sentence) -> Wording
    let pronouns: Pronouns
    let attribution: Attribution
    /// The title of the button that opens the share options, unless the app sets another one.
    let manageButtonTitle: String
    /// By sentence: with a title, then without one.
    private let parts: [[Part]]
    private let author: [UInt8]
    private let person: [UInt8]
    private let reader: [UInt8]
    /// Bytes of the longest sentence without names and title.
    let sentenceBytesMax: Int

    init(
        _ tag: String, pronouns: Pronouns, attribution: Attribution, manageButtonTitle: String,
        wording: @escaping @Sendable (Sentence) -> Wording
    ) {
        self.tag = tag
        self.wording = wording
        self.pronouns = pronouns
        self.attribution = attribution
        self.manageButtonTitle = manageButtonTitle
        let templates = Sentence.allCases.flatMap { [wording($0).titled, wording($0).untitled] }
        parts = templates.map(Language.parts)
        (author, person, reader) = (
            Array(pronouns.author.utf8), Array(pronouns.person.utf8), Array(pronouns.reader.utf8)
        )
        sentenceBytesMax =
            (templates.map(\.utf8.count).max() ?? 0) + author.count + max(person.count, reader.count)
    }

    /// Reads a template. Its text goes into JSON as it stands.
    private static func parts(of template: String) -> [Part] {
        var parts: [Part] = []
        var rest = Substring(template)
        func append(_ text: Substring) {
            precondition(
                text.utf8.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") },
                "a template's text can't go into JSON as it stands")
            if !text.isEmpty { parts.append(.text(Array(text.utf8))) }
        }
        while let start = rest.firstIndex(of: "{"), let end = rest[start...].firstIndex(of: "}") {
            append(rest[..<start])
            switch rest[start...end] {
            case "{author}": parts.append(.author)
            case "{person}": parts.append(.person)
            case "{title}": parts.append(.title)
            default: preconditionFailure("a sentence has no part of that name")
            }
            rest = rest[rest.index(after: end)...]
        }
        append(rest)
        return parts
    }

    /// What is put into a sentence, each as the inside of a JSON string. `nil`: it is not known.
    struct Names {
        var author: ArraySlice<UInt8>?
        var person: ArraySlice<UInt8>?
        var title: ArraySlice<UInt8>?
        /// Whether the named person reads the sentence.
        var isReader = false
    }

    /// Appends a sentence as the inside of a JSON string.
    func append(_ sentence: Sentence, _ names: Names, to json: inout [UInt8]) {
        for part in parts[2 * Int(sentence.rawValue) + (names.title == nil ? 1 : 0)] {
            switch part {
            case .text(let text): json += text
            case .author: if let name = names.author { json += name } else { json += author }
            case .person:
                if names.isReader {
                    json += reader
                } else if let name = names.person {
                    json += name
                } else {
                    json += person
                }
            case .title: if let title = names.title { json += title }
            }
        }
    }
}

extension Language {
    /// The first one is the default.
    static let all = [english, german]

    /// The language of a tag, or of its longest prefix that is known; English when there is none.
    static func of(_ tag: String?) -> Language {
        var rest = Substring(tag ?? "").lowercased()[...]
        while !rest.isEmpty {
            if let known = all.first(where: { $0.tag == rest }) { return known }
            rest = rest[..<(rest.lastIndex(of: "-") ?? rest.startIndex)]
        }
        return english
    }

    /// “From Ana”, “From Ana and Bo”, “From Ana and 2 others”.
    func summary(from names: [String]) -> String {
        switch names.count {
        case 0: ""
        case 1: Language.fill(attribution.fromOne, ["name": names[0]])
        case 2: Language.fill(attribution.fromTwo, ["name": names[0], "other": names[1]])
        default: Language.fill(attribution.fromMany, ["name": names[0], "count": "\(names.count - 1)"])
        }
    }

    /// The title of the menu's entry that replies to a conversation or a person; `nil`: it is not said to whom.
    func reply(to name: String?) -> String {
        name.map { Language.fill(attribution.reply, ["name": $0]) } ?? attribution.plainReply
    }

    /// Whether the title of the entry that removes an item says so: one of its words is the language's.
    func saysRemove(_ title: String) -> Bool {
        title.lowercased().split { !$0.isLetter }.contains { attribution.removeWords.contains(String($0)) }
    }

    /// A template with values in their places. Braces in the values are left as they are.
    private static func fill(_ template: String, _ values: [String: String]) -> String {
        var text = ""
        var rest = Substring(template)
        while let start = rest.firstIndex(of: "{"), let end = rest[start...].firstIndex(of: "}") {
            text += rest[..<start]
            text += values[String(rest[rest.index(after: start)..<end])] ?? ""
            rest = rest[rest.index(after: end)...]
        }
        return text + rest
    }
}

/// Throws unless the tag has the form of a language tag (BCP 47): `limitExceeded` or `malformedRequest`.
func checkLanguage(_ tag: String?) throws(ServiceError) {
    guard let tag else { return }
    try check(tag, "language", bytesMax: Limits.languageBytesMax)
    let isTag = tag.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { part in
        (1...8).contains(part.utf8.count) && part.utf8.allSatisfy { $0.isLetterOrDigit }
    }
    guard isTag else { throw ServiceError(.malformedRequest, "language is not a tag of BCP 47, as en or de-AT") }
}

extension UInt8 {
    fileprivate var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
