import Core
import Foundation

/// The events of one post as the record `n` stores them: as JSON that is ready to be sent. A page of a feed joins these
/// bytes without reading or writing JSON. Sentences contain the names at the time of the post.
///
///     date (8, milliseconds)  length (2), the JSON members that all notices share  texts (2)
///     each text: who sees it (1: 0 everybody, 1 only that person, 2 everybody but that person), place (1),
///     unless 0: root hash (32), length (2), a JSON object
struct StoredPost {
    /// Who sees a text.
    enum Audience: Hashable {
        case everybody
        case only(PersonIdentity)
        case everybodyBut(PersonIdentity)

        func includes(_ reader: PersonIdentity?) -> Bool {
            switch self {
            case .everybody: true
            case .only(let person): reader == person
            case .everybodyBut(let person): reader != person
            }
        }
    }

    struct Text {
        let audience: Audience
        let place: UInt8
        let json: ArraySlice<UInt8>
    }

    let milliseconds: UInt64
    /// `"author": ..., "collaboration": ..., "date": ...`, without braces.
    let members: ArraySlice<UInt8>
    let texts: [Text]

    private struct Members: Encodable {
        let author: PersonIdentity
        let collaboration: CollaborationIdentifier
        let date: Date
    }

    /// The record of some events. `name`: of a participant.
    ///
    /// Throws `limitExceeded` when they don't fit into a record.
    static func bytes(
        of events: [HighlightEvent], by author: PersonIdentity, on collaboration: CollaborationIdentifier,
        title: String?, at date: Date, name: (PersonIdentity) throws(ServiceError) -> String?
    ) throws(ServiceError) -> [UInt8] {
        let members = try JSON.encode(Members(author: author, collaboration: collaboration, date: date))
            .dropFirst().dropLast()
        var bytes: [UInt8] = []
        bytes.appendInteger(UInt64((date.timeIntervalSince1970 * 1000).rounded()))
        bytes.appendInteger(UInt16(members.count))
        bytes.append(contentsOf: members)
        let start = bytes.count
        bytes.appendInteger(UInt16(0))
        var count: UInt16 = 0
        let authorName = try name(author)
        func append(_ event: HighlightEvent, _ place: Int, _ person: String?, _ audience: Audience) throws(ServiceError)
        {
            var isReader = false
            if case .only = audience { isReader = true }
            let sentence = event.sentence(author: authorName, person: person, title: title, isReader: isReader)
            let json = try JSON.encode(PostedNotice(place: place, event: event, sentence: sentence))
            switch audience {
            case .everybody: bytes += [0, UInt8(place)]
            case .only(let root): bytes += [1, UInt8(place)] + root.rootHash.bytes
            case .everybodyBut(let root): bytes += [2, UInt8(place)] + root.rootHash.bytes
            }
            bytes.appendInteger(UInt16(clamping: json.count))
            bytes += json
            count += 1
        }
        precondition(events.count <= Limits.noticesPerPostMax, "a place takes one byte, and texts are counted in two")
        for (place, event) in events.enumerated() {
            switch event {
            case .mention(let person): try append(event, place, try name(person), .only(person))
            case .membership(_, let person?):
                let known = try name(person)
                try append(event, place, known, .everybodyBut(person))
                try append(event, place, known, .only(person))
            case .membership(_, nil), .change, .persistence: try append(event, place, nil, .everybody)
            }
        }
        withUnsafeBytes(of: count.littleEndian) { bytes.replaceSubrange(start..<start + 2, with: $0) }
        // A text that is too long for its length field makes the record longer than this limit too.
        guard bytes.count <= Limits.recordValueBytesMax else {
            throw ServiceError(
                .limitExceeded, detail: UInt32(Limits.recordValueBytesMax),
                "these notices, with names and title, don't fit into one post: post fewer at once")
        }
        assert(StoredPost(reading: bytes)?.texts.count == Int(count), "a post is not read as it was written")
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
        guard let milliseconds = number(8), let length = number(2), let members = take(Int(length)),
            let count = number(2)
        else { return nil }
        var texts: [Text] = []
        texts.reserveCapacity(Int(min(count, 128)))
        for _ in 0..<count {
            guard let kind = number(1), let place = number(1) else { return nil }
            let audience: Audience
            if kind == 0 {
                audience = .everybody
            } else {
                guard kind <= 2, let root = take(Digest.byteCount).flatMap({ Digest($0) }) else { return nil }
                let person = PersonIdentity(rootHash: root)
                audience = kind == 1 ? .only(person) : .everybodyBut(person)
            }
            guard let length = number(2), let json = take(Int(length)) else { return nil }
            texts.append(Text(audience: audience, place: UInt8(place), json: json))
        }
        guard position == value.count else { return nil }
        (self.milliseconds, self.members, self.texts) = (milliseconds, members, texts)
    }
}
