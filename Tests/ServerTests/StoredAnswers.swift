import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// Any JSON value.
indirect enum PlainJSON: Decodable, Equatable {
    case null
    case truth(Bool)
    /// As it is written.
    case number(String)
    case text(String)
    case list([PlainJSON])
    case object([String: PlainJSON])

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }

        init?(intValue: Int) { return nil }
    }

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let truth = try? value.decode(Bool.self) {
            self = .truth(truth)
        } else if let number = try? value.decode(JSONNumber.self) {
            self = .number(number.text)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if var list = try? decoder.unkeyedContainer() {
            var elements: [PlainJSON] = []
            while !list.isAtEnd { elements.append(try list.decode(PlainJSON.self)) }
            self = .list(elements)
        } else {
            let object = try decoder.container(keyedBy: AnyKey.self)
            var members: [String: PlainJSON] = [:]
            for key in object.allKeys { members[key.stringValue] = try object.decode(PlainJSON.self, forKey: key) }
            self = .object(members)
        }
    }

    /// The value as JSON. Its texts have no control characters.
    var json: String {
        switch self {
        case .null: "null"
        case .truth(let truth): truth ? "true" : "false"
        case .number(let text): text
        case .text(let text): PlainJSON.quoted(text)
        case .list(let elements): "[" + elements.map(\.json).joined(separator: ",") + "]"
        case .object(let members): PlainJSON.json(members)
        }
    }

    private static func json(_ members: [String: PlainJSON]) -> String {
        let parts = members.sorted { $0.key < $1.key }.map { name, value in "\(quoted(name)):\(value.json)" }
        return "{" + parts.joined(separator: ",") + "}"
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
        return "\"" + escaped + "\""
    }

    /// An object without one of its members.
    func without(_ name: String) -> PlainJSON {
        guard case .object(var members) = self else { return self }
        members[name] = nil
        return .object(members)
    }

    /// Where `other` is not the same, and how; `nil` when it is the same. `place`: where this value stands.
    func difference(from other: PlainJSON, at place: String) -> String? {
        switch (self, other) {
        case (.object(let expected), .object(let came)):
            for name in Set(expected.keys).union(came.keys).sorted() {
                guard let one = expected[name] else { return "\(place).\(name) came, too" }
                guard let two = came[name] else { return "\(place).\(name) is missing" }
                if let difference = one.difference(from: two, at: "\(place).\(name)") { return difference }
            }
            return nil
        case (.list(let expected), .list(let came)) where expected.count == came.count:
            for (index, (one, two)) in zip(expected, came).enumerated() {
                if let difference = one.difference(from: two, at: "\(place)[\(index)]") { return difference }
            }
            return nil
        default: return self == other ? nil : "\(place) is \(other.json) instead of \(json)"
        }
    }
}

/// What a service answers, as far as it is kept.
enum StoredAnswer: Equatable {
    case json(PlainJSON)
    case bytes([UInt8])
    /// Of a long answer only its length and its SHA-256.
    case long(count: Int, hash: String)
    case error(Int)

    /// `cleared`: the first byte and the number of bytes that count as zeros. `isLong`: whether the hash is kept.
    init(_ body: [UInt8], cleared: [Int]?, isLong: Bool) {
        var body = body
        if let cleared, cleared.count == 2, cleared[0] + cleared[1] <= body.count {
            for place in cleared[0]..<cleared[0] + cleared[1] { body[place] = 0 }
        }
        self =
            isLong
            ? .long(count: body.count, hash: ReferenceSHA256.hash(body).hexadecimal) : .bytes(body)
    }

    fileprivate var text: String {
        switch self {
        case .json(let value): value.json
        case .bytes(let bytes): bytes.hexadecimal
        case .long(let count, let hash): "\(count) bytes with the hash \(hash)"
        case .error(let code): "the error \(code)"
        }
    }
}

/// A query with what was answered. The head of a file with answers says what the fields mean.
struct StoredQuery: Decodable {
    let name: String
    let request: String?
    let fields: PlainJSON?
    let operation: Int?
    let body: String?
    let isTouched: Bool?
    let grows: String?
    let cleared: [Int]?
    private let answer: PlainJSON?
    private let bytes: Int?
    private let sha256: String?
    private let error: Int?

    /// Whether only the length and the hash of the answer are kept.
    var isLong: Bool { sha256 != nil }

    /// `nil`: the line has no answer.
    var expected: StoredAnswer? {
        if let code = error { return .error(code) }
        if let bytes, let sha256 { return .long(count: bytes, hash: sha256) }
        guard let answer else { return nil }
        if operation != nil, case .text(let text) = answer {
            return [UInt8](hexadecimal: text).map { StoredAnswer.bytes($0) }
        }
        return .json(answer)
    }

    /// What is wrong with an answer; `nil` when it is the expected one. `isLater`: whether something was changed since
    /// the expected one.
    func mismatch(_ came: StoredAnswer, isLater: Bool) -> String? {
        guard let expected else { return "\(name): no answer is kept" }
        if case .json(let one) = expected, case .json(let two) = came {
            let left = isLater ? grows : nil
            let kept = left.map { one.without($0) } ?? one
            let compared = left.map { two.without($0) } ?? two
            return kept.difference(from: compared, at: "answer").map { "\(name): \($0)" }
        }
        return expected == came ? nil : "\(name): \(came.text) instead of \(expected.text)"
    }
}

/// What a service of a format has answered; see `Tests/StoredFormats`.
struct StoredAnswers {
    /// How it was asked.
    struct Head: Decodable {
        /// When, in milliseconds since 1970.
        let at: Int
        /// The administrator's API key.
        let key: String
        /// The file with the secret, in base64.
        let secret: String
    }

    let head: Head
    let queries: [StoredQuery]
    /// The lines of the queries.
    let lines: [String]

    init(ofFormat format: Int) throws {
        let path = packageFile("Tests/StoredFormats/service-\(format)-answers.txt")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let all = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
        head = try JSON.decode(Head.self, from: Array(try #require(all.first).utf8))
        lines = Array(all.dropFirst())
        queries = try lines.map { try StoredAnswers.query($0) }
    }

    static func query(_ line: String) throws -> StoredQuery {
        try JSON.decode(StoredQuery.self, from: Array(line.utf8))
    }

    /// The line with another digit in its answer; `nil` when the answer has none.
    static func changed(_ line: String) -> String? {
        let starts = ["\"answer\":", "\"sha256\":", "\"error\":"].compactMap { line.range(of: $0)?.upperBound }
        guard let start = starts.min(),
            let place = line[start...].lastIndex(where: { $0.isASCII && $0.isNumber })
        else { return nil }
        var other = line
        other.replaceSubrange(place...place, with: line[place] == "0" ? "1" : "0")
        return other
    }
}
