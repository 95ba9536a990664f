import Core
import Foundation

/// The events of one post as the record `n` stores them: JSON that is ready to be sent, up to the sentences. Sentences
/// are composed when the post is read, in the reader's language, from the names at the time of the post.
///
///     date (8, milliseconds)  length (2), the JSON members that all notices share
///     the author's name, the title: each a length (2; 0xffff: not known) and the inside of a JSON string
///     texts (2), each:
///         sentence (1)  who sees it (1: 0 everybody, 1 only that person, 2 everybody, and that person as the reader)
///         unless 0: root hash (32), the person's name as above
///         length (2), a JSON object up to the sentence
struct StoredPost {
    /// Who sees a text.
    enum Audience: Hashable {
        case everybody
        case only(PersonIdentity)
        /// Everybody. The person is addressed as the reader.
        case addressing(PersonIdentity)

        fileprivate var code: UInt8 {
            switch self {
            case .everybody: 0
            case .only: 1
            case .addressing: 2
            }
        }

        fileprivate var person: PersonIdentity? {
            switch self {
            case .everybody: nil
            case .only(let person), .addressing(let person): person
            }
        }

        func includes(_ reader: PersonIdentity?) -> Bool {
            if case .only(let person) = self { reader == person } else { true }
        }
    }

    struct Text {
        let sentence: Sentence
        let audience: Audience
        let name: ArraySlice<UInt8>?
        /// `{"event": ..., "place": ..., "sentence": "`.
        let head: ArraySlice<UInt8>

        /// Whether the reader is the person whom the event names.
        func addresses(_ reader: PersonIdentity?) -> Bool {
            reader != nil && audience.person == reader
        }
    }

    let milliseconds: UInt64
    /// `"author": ..., "collaboration": ..., "date": ...`, without braces.
    let members: ArraySlice<UInt8>
    let author: ArraySlice<UInt8>?
    let title: ArraySlice<UInt8>?
    /// In the order of the events.
    let texts: [Text]

    private static let unknownLength = UInt16.max
    private static let beginningOfSentence = Array(#","sentence":""#.utf8)

    private struct Members: Encodable {
        let author: PersonIdentity
        let collaboration: CollaborationIdentifier
        let date: Date
    }

    private struct Head: Encodable {
        let event: HighlightEvent
        let place: Int
    }

    /// The record of some events. `name`: of a participant.
    ///
    /// Throws `limitExceeded` when they, or their notices in some language, don't fit into a record.
    static func bytes(
        of events: [HighlightEvent], by author: PersonIdentity, on collaboration: CollaborationIdentifier,
        title: String?, at date: Date, name: (PersonIdentity) -> String?
    ) throws(ServiceError) -> [UInt8] {
        precondition(events.count <= Limits.noticesPerPostMax, "texts are counted in two bytes")
        let members = try JSON.encode(Members(author: author, collaboration: collaboration, date: date))
            .dropFirst().dropLast()
        var bytes: [UInt8] = []
        bytes.appendInteger(UInt64((date.timeIntervalSince1970 * 1000).rounded()))
        bytes.append(field: members)
        let before = bytes.count
        try bytes.append(name: name(author))
        try bytes.append(name: title)
        let namesCount = bytes.count - before
        bytes.appendInteger(UInt16(events.count))
        // An upper bound of the bytes of all notices, in every language.
        var longest = members.count
        for (place, event) in events.enumerated() {
            let sentence = Sentence(event.kind, by: author)
            let audience = Audience(of: event, by: author)
            let start = bytes.count
            bytes += [sentence.rawValue, audience.code]
            if let person = audience.person {
                bytes += person.rootHash.bytes
                try bytes.append(name: name(person))
            }
            let head = try JSON.encode(Head(event: event, place: place)).dropLast() + beginningOfSentence
            bytes.append(field: head)
            longest += bytes.count - start + namesCount + Language.sentenceBytesMax
        }
        // What is too long for its length field makes the bound larger than this limit too.
        guard max(longest, bytes.count) <= Limits.recordValueBytesMax else {
            throw ServiceError(
                .limitExceeded, detail: UInt32(Limits.recordValueBytesMax),
                "these notices, with names and title, don't fit into one post: post fewer at once")
        }
        assert(StoredPost(reading: bytes)?.texts.count == events.count, "a post is not read as it was written")
        return bytes
    }

    /// Reads a record.
    ///
    /// Throws `storageDamaged` when it is something else.
    init(_ value: [UInt8]) throws(ServiceError) {
        guard let post = StoredPost(reading: value) else {
            throw ServiceError(.storageDamaged, "the record of a post can't be read")
        }
        self = post
    }

    private init?(reading value: [UInt8]) {
        var position = 0
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard value.count - position >= count else { return nil }
            defer { position += count }
            return value[position..<position + count]
        }
        func number(_ count: Int) -> UInt64? {
            take(count)?.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        func field() -> ArraySlice<UInt8>? { number(2).flatMap { take(Int($0)) } }
        func name() -> ArraySlice<UInt8>?? {
            guard let length = number(2) else { return nil }
            guard length != StoredPost.unknownLength else { return .some(nil) }
            return take(Int(length)).map { .some($0) }
        }
        guard let milliseconds = number(8), let members = field(), let author = name(), let title = name(),
            let count = number(2)
        else { return nil }
        var texts: [Text] = []
        texts.reserveCapacity(Int(min(count, 128)))
        for _ in 0..<count {
            guard let sentence = number(1).flatMap({ Sentence(rawValue: UInt8($0)) }), let code = number(1) else {
                return nil
            }
            var audience = Audience.everybody
            var known: ArraySlice<UInt8>?
            if code != 0 {
                guard code <= 2, let root = take(Digest.byteCount).flatMap({ Digest($0) }), let name = name() else {
                    return nil
                }
                let person = PersonIdentity(rootHash: root)
                audience = code == 1 ? .only(person) : .addressing(person)
                known = name
            }
            guard let head = field() else { return nil }
            texts.append(Text(sentence: sentence, audience: audience, name: known, head: head))
        }
        guard position == value.count else { return nil }
        (self.milliseconds, self.members, self.texts) = (milliseconds, members, texts)
        (self.author, self.title) = (author, title)
    }

    /// Appends a text as a JSON object.
    func append(_ text: Text, addressing isReader: Bool, _ language: Language, to json: inout [UInt8]) {
        json += text.head
        language.append(
            text.sentence, Language.Names(author: author, person: text.name, title: title, isReader: isReader),
            to: &json)
        json += [UInt8(ascii: "\""), UInt8(ascii: "}")]
    }

    /// The most bytes that a text has as a JSON object, in every language.
    func byteCountMax(of text: Text) -> Int {
        text.head.count + (author?.count ?? 0) + (title?.count ?? 0) + (text.name?.count ?? 0)
            + Language.sentenceBytesMax
    }
}

extension StoredPost.Audience {
    fileprivate init(of event: HighlightEvent, by author: PersonIdentity) {
        switch event.kind {
        case .mention(let person): self = .only(person)
        // An author who joins or leaves is named as the author.
        case .membership(_, let person?) where person != author: self = .addressing(person)
        case .membership, .change, .persistence: self = .everybody
        }
    }
}

extension Language {
    /// Bytes of the longest sentence without names and title, with what a notice has behind its head.
    fileprivate static let sentenceBytesMax = (all.map(\.sentenceBytesMax).max() ?? 0) + 4
}

extension [UInt8] {
    fileprivate mutating func append(field: some Collection<UInt8>) {
        appendInteger(UInt16(clamping: field.count))
        append(contentsOf: field)
    }

    /// Appends a length, and the inside of the JSON string. A blank name is none.
    fileprivate mutating func append(name: String?) throws(ServiceError) {
        guard let name, !name.isBlank else { return appendInteger(UInt16.max) }
        append(field: try JSON.encode(name).dropFirst().dropLast())
    }
}
