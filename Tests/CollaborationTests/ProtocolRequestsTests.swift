import Collaboration
import Foundation
import TestSupport
import Testing

/// The examples of PROTOCOL.md for the layer's requests, against the types that travel.
struct ProtocolRequestsTests {
    private static let names = Requests.all.map { $0.name }

    /// JSON with its keys in order and no white space.
    private func canonical(_ json: Data) throws -> String {
        let value = try JSONSerialization.jsonObject(with: json, options: .fragmentsAllowed)
        let data = try JSONSerialization.data(
            withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed])
        return String(decoding: data, as: UTF8.self)
    }

    private func example(_ name: String) throws -> Data {
        let blocks = try ProtocolDocument().jsonBlocks.filter { $0.name == name }
        #expect(blocks.count == 1, "PROTOCOL.md has \(blocks.count) examples named \(name)")
        return Data(try #require(blocks.first).text.utf8)
    }

    /// The top-level keys of an example.
    private func keys(_ name: String) throws -> Set<String> {
        let value = try JSONSerialization.jsonObject(with: try example(name))
        return Set(try #require(value as? [String: Any]).keys)
    }

    @Test("Every request has a subsection of its name, and there are no examples of others")
    func subsections() throws {
        let document = try ProtocolDocument()
        for name in Self.names { #expect(document.hasHeading(name), "there is no subsection \(name)") }
        let expected = Self.names.flatMap { ["\($0)-request", "\($0)-answer"] }
        #expect(document.jsonBlocks.map(\.name).sorted() == expected.sorted())
    }

    @Test("The example of a request and its answer are read and written again as they stand", arguments: names)
    func reread(name: String) throws {
        func check<Request: CollaborationRequest>(_ type: Request.Type) throws {
            let (request, answer) = (try example("\(name)-request"), try example("\(name)-answer"))
            let readRequest = try JSON.decodeStrictly(Request.self, from: Array(request))
            #expect(try canonical(Data(JSON.encode(readRequest))) == canonical(request))
            let readAnswer = try JSON.decodeStrictly(Request.Answer.self, from: Array(answer))
            #expect(try canonical(Data(JSON.encode(readAnswer))) == canonical(answer))
        }
        let type = try #require(Requests.all.first { $0.name == name } as (any RuledRequest.Type)?)
        try check(type)
    }

    @Test("The subject of a request is what PROTOCOL.md says, and queries have none", arguments: names)
    func subjects(name: String) throws {
        let json = try example("\(name)-request")
        let type = try #require(Requests.all.first { $0.name == name } as (any RuledRequest.Type)?)
        let subject = try Requests.parse(name, Array(json)).subject?.bytes
        guard !type.isQuery else { return #expect(subject == nil) }
        let fields = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
        let expected: (kind: UInt8, name: Any?) =
            if let collaboration = fields["collaboration"] {
                (1, collaboration)
            } else if let account = fields["owner"] ?? fields["account"] {
                (2, account)
            } else if name == "removeKey" {
                (5, fields["identifier"])
            } else if let principal = fields["name"] {
                (4, principal)
            } else {
                (3, (fields["conversation"] as? [String: Any])?["identifier"])
            }
        #expect(subject == [expected.kind] + Array(try #require(expected.name as? String).utf8))
    }

    @Test("The examples have the fields that the tables name, and all that may not be left out", arguments: names)
    func fields(name: String) throws {
        let document = try ProtocolDocument()
        let row = try #require(document.table(headed: ["request", "fields", "answer"]).first { $0[0] == name })
        let objects = document.table(under: "Objects")
        for (cell, keys) in [(row[1], try keys("\(name)-request")), (row[2], try keys("\(name)-answer"))] {
            // An answer that is one object has that object's fields.
            let fields = fieldNames(objects.first { $0[0] == cell }?[1] ?? cell)
            #expect(keys.subtracting(fields.map(\.name)).isEmpty, "the tables don't name all of \(keys)")
            let missing = fields.filter { !$0.isOptional && !keys.contains($0.name) }
            #expect(missing.isEmpty, "an example lacks fields that the tables demand")
        }
    }

    /// The names in a cell like `url, title? (what it shows), kind: a or b`.
    private func fieldNames(_ cell: String) -> [(name: String, isOptional: Bool)] {
        var depth = 0
        let plain = cell.filter { character in
            if character == "(" { depth += 1 }
            defer { if character == ")" { depth -= 1 } }
            return depth == 0
        }
        return plain.split(separator: ",").compactMap { part in
            let field = part.prefix { $0 != ":" }.filter { $0 != " " }
            // What follows a colon lists values, not fields.
            guard let first = field.first, first.isLetter else { return nil }
            return (field.filter { $0 != "?" }, field.hasSuffix("?"))
        }
    }
}
