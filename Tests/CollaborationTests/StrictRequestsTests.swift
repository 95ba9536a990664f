import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// What a request's JSON may contain, request by request: the examples of PROTOCOL.md with one thing changed.
struct StrictRequestsTests {
    private static let names = Requests.all.map { $0.name }

    private func example(_ name: String) throws -> MarkedJSON {
        let block = try #require(try ProtocolDocument().jsonBlocks.first { $0.name == "\(name)-request" })
        return try MarkedJSON(Data(block.text.utf8))
    }

    /// The error with which a request is refused; `nil` when it is read.
    private func error(_ name: String, _ json: String) -> ServiceError? {
        thrownServiceError { _ = try Requests.parse(name, Array(json.utf8)) }
    }

    @Test("A field that nobody knows is refused by its path, at every depth", arguments: names)
    func unknownFields(name: String) throws {
        let example = try example(name)
        #expect(error(name, example.text()) == nil)
        for object in example.objects {
            let path = object.isEmpty ? "displayNam" : "\(object).displayNam"
            for value in ["null", "1", "{}"] {
                let error = error(name, example.adding("\"displayNam\":\(value)", at: object))
                #expect(error?.code == .malformedRequest, "\(path) = \(value)")
                #expect(error?.reason.contains(" \(path) is not a known field") == true, "\(error?.reason ?? path)")
            }
        }
    }

    @Test("A link with characters that a link can't have is refused: they are not escaped to make another link")
    func linksAsTheyAre() throws {
        for link in [
            #"https://ex.org\\@evil.example/x"#, "https://ex.org/ a", "https://ex.org/%zz", "https://ex.org/é",
            "https://bücher.example/", "https://ex.org/<b>", #"https://ex.org/\\..\\x"#, "https://ex.org/a#b#c",
        ] {
            let error = error("highlight", #"{"url":"\#(link)"}"#)
            #expect(error?.code == .malformedRequest && error?.reason.contains("url is not a link") == true, "\(link)")
        }
        for link in ["https://ex.org/%5C%20?a=b&c#d", "https://[::1]:8080/x", "https://u@ex.org/~a;b=c,d"] {
            #expect(error("highlight", #"{"url":"\#(link)"}"#) == nil, "\(link)")
        }
    }

    @Test("A field that is given twice is refused, at every depth", arguments: names)
    func repeatedFields(name: String) throws {
        let example = try example(name)
        for object in example.objects {
            for field in example.names(at: object) {
                let path = object.isEmpty ? field : "\(object).\(field)"
                for escaped in [
                    field, field.prefix(1).replacing(/./) { "\\u00" + hexadecimal($0.output) } + field.dropFirst(),
                ] {
                    let error = error(name, example.adding("\"\(escaped)\":null", at: object))
                    #expect(error?.code == .malformedRequest, "\(path)")
                    #expect(error?.reason.contains(" \(path) is given twice") == true, "\(error?.reason ?? path)")
                }
            }
        }
    }

    private func hexadecimal(_ text: Substring) -> String { text.utf8.map { String($0, radix: 16) }.joined() }

    @Test("A value of another kind is refused by its path, at every depth", arguments: names)
    func otherKinds(name: String) throws {
        let example = try example(name)
        let samples = [
            "object": "{\"a\":1}", "array": "[[]]", "text": "\"\\u0000\"", "number": "2.5", "truth": "true",
        ]
        for path in example.values {
            let kind = example.kind(at: path)
            for (other, sample) in samples where other != kind || kind == "number" {
                let error = error(name, example.replacing(path, with: sample))
                #expect(error?.code == .malformedRequest, "\(path) = \(sample)")
                #expect(error?.reason.contains(path) == true, "\(path) = \(sample): \(error?.reason ?? "it was read")")
            }
        }
    }

    @Test("Null stands for an absent optional field, and for no other", arguments: names)
    func null(name: String) throws {
        let example = try example(name)
        let row = try #require(
            try ProtocolDocument().table(headed: ["request", "fields", "answer"]).first { $0[0] == name })
        for field in row[1].split(separator: ",").map({ $0.trimmingCharacters(in: .whitespaces) }) {
            let isOptional = field.hasSuffix("?")
            let plain = field.filter { $0 != "?" }
            let isGiven = example.names(at: "").contains(plain)
            let json = isGiven ? example.replacing(plain, with: "null") : example.adding("\"\(plain)\":null", at: "")
            let error = error(name, json)
            if plain == "isAllowed" {
                #expect(error == nil, "null removes the earlier answer")
            } else if plain == "grant" {
                #expect(error?.code == .malformedRequest, "null would be read as the backend's own request")
            } else if isOptional {
                // A request may want one of two optional fields: then null is what leaving the field out is.
                let absent = isGiven ? self.error(name, example.text(without: plain)) : nil
                #expect(error?.reason == absent?.reason, "\(plain): \(error?.reason ?? "")")
            } else {
                #expect(error?.code == .malformedRequest && error?.reason.contains("\(plain) is null") == true)
            }
        }
    }

    @Test("A required field that is left out is named", arguments: names)
    func missingFields(name: String) throws {
        let example = try example(name)
        let row = try #require(
            try ProtocolDocument().table(headed: ["request", "fields", "answer"]).first { $0[0] == name })
        for field in row[1].split(separator: ",").map({ $0.trimmingCharacters(in: .whitespaces) })
        // Null has a meaning there, and the rule itself refuses what is absent.
        where !field.hasSuffix("?") && field != "isAllowed" {
            let error = error(name, example.text(without: field))
            #expect(error?.reason.contains("\(field) is missing") == true, "\(error?.reason ?? field)")
        }
    }

    @Test("Two levels of consent, two feeds and fields of another kind of event are refused")
    func alternatives() throws {
        let set = #"{"account":"ana","everyApp":true,"isAllowed":true,"level":"#
        for level in [
            #"{"everything":true,"app":"a"}"#, #"{"app":"a","conversation":"c"}"#, #"{"everything":false}"#, "{}",
            #"{"everything":false,"app":"a"}"#, #"{"everything":true,"app":"a","conversation":"c"}"#,
            #"{"everything":null}"#, #"{"everything":1}"#,
        ] {
            let error = error("setConsent", set + level + "}")
            #expect(error?.reason.contains("level") == true, "\(level): \(error?.reason ?? "it was read")")
        }
        #expect(error("setConsent", set + #"{"everything":null,"app":"a"}}"#) == nil)
        let root = String(repeating: "0", count: 64)
        for feed in [
            #"{"account":"ana","participant":"\#(root)"}"#, #"{"account":"ana","collaboration":"deck"}"#,
            #"{"participant":"\#(root)"}"#, "{}", #"{"account":null}"#,
        ] {
            let error = error("readNotices", #"{"after":0,"limit":1,"feed":\#(feed)}"#)
            #expect(error?.reason.contains("feed is not a feed") == true, "\(feed): \(error?.reason ?? "it was read")")
        }
        let grant = String(repeating: "A", count: 150)
        for (event, field) in [
            (#"{"kind":"change","trigger":"edit","person":"\#(root)"}"#, "person"),
            (#"{"kind":"persistence","trigger":"moved","person":"\#(root)"}"#, "person"),
            (#"{"kind":"mention","trigger":"edit","person":"\#(root)"}"#, "trigger"),
            (#"{"kind":"membership","trigger":"edit","person":"\#(root)"}"#, "trigger"),
        ] {
            let error = error("postNotices", #"{"collaboration":"deck","grant":"\#(grant)","events":[\#(event)]}"#)
            #expect(error?.reason.contains("events[0].\(field)") == true, "\(event): \(error?.reason ?? "it was read")")
        }
        #expect(error("postNotices", #"{"collaboration":"deck","grant":"\#(grant)","events":[]}"#) == nil)
    }

    @Test("Answers and records are read with fields that nobody knows yet, requests are not")
    func answers() throws {
        let json = Array(#"{"sequence":3,"changed":1,"later":{"more":[1]}}"#.utf8)
        #expect(try JSON.decode(ChangeReceipt.self, from: json).sequence == 3)
        let error = thrownServiceError { _ = try JSON.decodeStrictly(ChangeReceipt.self, from: json) }
        #expect(error?.reason.contains(" later is not a known field") == true)
    }

    @Test("A reason names the place of a value with brackets, and escapes what a peer has written there")
    func places() {
        let root = String(repeating: "0", count: 64)
        let people = #"{"collaboration":"a","participants":[{"identity":"\#(root)"},"#
        #expect(
            error("addParticipants", people + "{}]}")?.reason.contains("participants[1].identity is missing") == true)
        #expect(error("addParticipants", people + "null]}")?.reason.contains("participants[1] is null") == true)
        let strange = error("addParticipants", people + #"{"identity":"\#(root)","\u001b[2J\n":1}]}"#)
        #expect(strange?.reason.contains(#"participants[1].\u001B[2J\u000A is not a known field"#) == true)
        let role = error("addParticipants", people + #"{"identity":"\#(root)","role":"king"}]}"#)
        #expect(role?.reason.contains("participants[1].role is not a value that is known") == true)
    }
}

/// Numbers of requests that have a range.
@Suite("Ranges of a request's numbers")
struct RequestRangeTests {
    private let world = World()

    @Test("A query waits for 0 to 60,000 milliseconds")
    func waits() throws {
        let collaboration = try world.start()
        let ana = try account("ana")
        func codes(_ milliseconds: Int) -> [ServiceError.Code?] {
            let feed = ReadNotices(.collaboration(collaboration), waitMilliseconds: milliseconds)
            let shelf = ReadShelf(of: ana, for: .everyApp, after: 0, waitMilliseconds: milliseconds)
            return [world.code(of: feed), world.code(of: shelf)]
        }
        for milliseconds in [0, 1, 59_999, 60_000] { #expect(codes(milliseconds) == [nil, nil], "\(milliseconds)") }
        for milliseconds in [-1, .min] {
            #expect(codes(milliseconds) == [.malformedRequest, .malformedRequest], "\(milliseconds)")
        }
        for milliseconds in [60_001, .max] {
            #expect(codes(milliseconds) == [.limitExceeded, .limitExceeded], "\(milliseconds)")
        }
        let error = world.error(of: ReadNotices(.collaboration(collaboration), waitMilliseconds: 60_001))
        #expect(error?.detail == 60_000)
        #expect(error?.reason == "waitMilliseconds is 60001, not a number from 0 to 60000")
    }

    @Test("Offsets and limits are within their ranges")
    func pages() throws {
        let collaboration = try world.start()
        let ana = try account("ana")
        for (offset, code) in [
            (0, nil), (Limits.shelfOffsetMax, nil), (-1, .malformedRequest),
            (Limits.shelfOffsetMax + 1, .limitExceeded),
            (.max, .limitExceeded), (.min, .malformedRequest),
        ] as [(Int, ServiceError.Code?)] {
            #expect(world.code(of: ReadShelf(of: ana, for: .everyApp, offset: offset)) == code, "\(offset)")
        }
        for (limit, code) in [
            (1, nil), (64, nil), (0, .malformedRequest), (-1, .malformedRequest), (257, .limitExceeded),
            (.max, .limitExceeded),
        ] as [(Int, ServiceError.Code?)] {
            #expect(world.code(of: ReadShelf(of: ana, for: .everyApp, limit: limit)) == code, "\(limit)")
            #expect(world.code(of: ReadNotices(.collaboration(collaboration), limit: limit)) == code, "\(limit)")
            #expect(world.code(of: ListParticipants(of: collaboration, limit: limit)) == code, "\(limit)")
            #expect(world.code(of: ListInvitations(of: collaboration, limit: limit)) == code, "\(limit)")
            #expect(world.code(of: ListShares(of: ana, scope: .private, limit: limit)) == code, "\(limit)")
        }
        #expect(world.error(of: ReadShelf(of: ana, for: .everyApp, limit: 0))?.reason.hasPrefix("limit is 0, ") == true)
    }

    @Test("A highlight is looked up by either its collaboration or its link")
    func eitherName() throws {
        let collaboration = try world.start()
        var both = FindHighlight(collaboration)
        both.url = try world.send(FindHighlight(collaboration)).url
        #expect(world.code(of: both) == .malformedRequest)
    }
}
