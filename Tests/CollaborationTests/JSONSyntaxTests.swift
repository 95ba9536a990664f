import Collaboration
import Core
import Foundation
import TestSupport
import Testing

/// JSON texts, against RFC 8259.
struct JSONSyntaxTests {
    private static let accepted: [String] = [
        "null", "true", " false ", "0", "-0", "10", "-1.5", "1e3", "1E+30", "0.00e-1", "\"\"", "\"a/b\\/c\"",
        #""\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\udddd\u0000""#, "\"é🗝\u{7f}\u{2028}\"", "[]", "[ ]", "{}", "{ }",
        "\t\r\n [ 1 , [ ] , { } ]\n", #"{"a":1,"b":{"a":2},"":[{"a":3}]}"#, #"{"\u0061b":1,"ab ":2,"AB":3}"#,
        "{\"é\":1,\"e\u{301}\":2}", String(repeating: "[", count: 32) + String(repeating: "]", count: 32),
    ]

    private static let refused: [String] = [
        "", " ", "[", "{", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1],", "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}",
        "{,}", "{a:1}", "{'a':1}", "{1:1}", "{\"a\":1 \"b\":2}", "{\"a\":1}}", "{\"a\",1}", "nul", "nulls", "True",
        "NaN",
        "Infinity", "-Infinity", "-", "+1", "01", "-01", "1.", ".5", "1.e3", "1e", "1e+", "0x10", "1_000", "1 2", "--1",
        "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u+123\"", "\"\t\"", "\"\n\"", "\"\u{0}\"",
        "\"\u{1f}\"", "\"\\ud83d\"", "\"\\ud83d\\n\"", "\"\\ud83d\\ud83d\"", "\"\\uddddx\"", "\"\\udddd\\ud83d\"",
        "\u{feff}{}", "{}\u{feff}", "\u{a0}1", "// x\n1", "/* */1", "1;", #"{"a":1,"a":1}"#, #"{"a":1,"\u0061":2}"#,
        #"{"x":{"a":1,"b":2,"a":3}}"#, String(repeating: "[", count: 33) + String(repeating: "]", count: 33),
    ]

    /// Bytes of a text that is not UTF-8: cut off, overlong, surrogates, beyond the last scalar, stray.
    private static let notText: [[UInt8]] = [
        [0xc3], [0xc3, 0x28], [0xe2, 0x82], [0xe2, 0x28, 0xa1], [0xf0, 0x9f, 0x97], [0xf0, 0x28, 0x8c, 0xbc],
        [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80], [0xe0, 0x9f, 0xbf], [0xf0, 0x80, 0x80, 0x80],
        [0xf0, 0x8f, 0xbf, 0xbf], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80],
        [0xf5, 0x80, 0x80, 0x80], [0xff], [0xfe], [0x80], [0xbf, 0x80],
    ]

    @Test("Every text of the grammar is read")
    func accepted() {
        for text in Self.accepted { #expect(JSONDump.of(Array(text.utf8)) != nil, "\(text)") }
    }

    @Test("Every other text is refused with the byte where it goes wrong")
    func refused() {
        for text in Self.refused {
            let error = thrownServiceError { _ = try JSON.decode(JSONDump.self, from: Array(text.utf8)) }
            let isDeep = text.hasPrefix("[[")
            #expect(error?.code == (isDeep ? .limitExceeded : .malformedRequest), "\(text)")
            #expect(error?.reason.contains("at byte ") == true, "\(text): \(error?.reason ?? "")")
        }
        for bytes in Self.notText {
            let json = Array("\"a".utf8) + bytes + Array("\"".utf8)
            let error = thrownServiceError { _ = try JSON.decode(JSONDump.self, from: json) }
            #expect(error?.code == .malformedRequest && error?.reason.contains("at byte 2 ") == true, "\(bytes)")
        }
    }

    @Test("Escape sequences and characters of several bytes are read as what they stand for")
    func escapes() throws {
        let text = #"["\"\\\/\b\f\n\r\t\u0041\u00E9\uD83D\uDDDDé🗝"]"#
        let read = try JSON.decode([String].self, from: Array(text.utf8))
        #expect(read == ["\"\\/\u{8}\u{c}\n\r\tA\u{e9}\u{1f5dd}\u{e9}\u{1f5dd}"])
        #expect(try JSON.decode([String: Int].self, from: Array(#"{"\u0061\n":1}"#.utf8)) == ["a\n": 1])
    }

    @Test("The reason of a refusal says what and where")
    func reasons() {
        let reasons = [
            (#"{"a":1,}"#, "at byte 7 a name in quotation marks is missing"), ("[1,]", "at byte 3 a value is missing"),
            ("\u{feff}1", "at byte 0 there is a byte-order mark"), ("[01]", "at byte 2 a digit follows a zero"),
            (#"["\ud83d"]"#, "at byte 2 an escape sequence is half of a surrogate pair"),
            (#"{"a":[{"b":1,"c":{},"b":2}]}"#, "a[0].b is given twice, again at byte 21"),
            ("1 x", "at byte 2 something follows the value"), ("[1", "at byte 2 “,” or “]” is missing"),
        ]
        for (text, reason) in reasons {
            let error = thrownServiceError { _ = try JSON.decode(JSONDump.self, from: Array(text.utf8)) }
            #expect(error?.reason.contains(reason) == true, "\(text): \(error?.reason ?? "it was read")")
        }
    }

    @Test("A name that stands twice among many is found, wherever it stands")
    func repeatedNames() {
        let names = (0..<300).map { "n\($0)" }
        for (first, second) in [(0, 299), (0, 1), (14, 16), (15, 17), (17, 18), (150, 220)] {
            var mutated = names
            mutated[second] = names[first]
            for (list, isRefused) in [(names, false), (mutated, true)] {
                let json = "{" + list.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
                let error = thrownServiceError { _ = try JSON.decode([String: Int].self, from: Array(json.utf8)) }
                #expect((error != nil) == isRefused, "\(first), \(second)")
                #expect(error.map { $0.reason.contains("n\(first) is given twice") } ?? true)
            }
        }
    }

    @Test("Whole numbers are digits within the type's range")
    func wholeNumbers() throws {
        func read<Value: FixedWidthInteger & Decodable>(_ type: Value.Type, _ text: String) -> Value? {
            try? JSON.decode([Value].self, from: Array("[\(text)]".utf8)).first
        }
        #expect(read(UInt64.self, "18446744073709551615") == .max)
        #expect(read(Int64.self, "-9223372036854775808") == .min)
        #expect(read(Int.self, "-0") == 0)
        for text in ["18446744073709551616", "-1", "1.0", "1e3", "true", "\"1\"", "null", "99999999999999999999999"] {
            #expect(read(UInt64.self, text) == nil, "\(text)")
        }
        for text in ["9223372036854775808", "-9223372036854775809", "2.5", "1E0"] {
            #expect(read(Int64.self, text) == nil, "\(text)")
        }
        #expect(read(UInt8.self, "255") == 255)
        #expect(read(UInt8.self, "256") == nil)
        #expect(read(Int8.self, "-129") == nil)
    }

    @Test("Dates, truths, links and binary data are of one kind each")
    func kinds() throws {
        func isRead<Value: Decodable>(_ type: Value.Type, _ text: String) -> Bool {
            (try? JSON.decode([Value].self, from: Array("[\(text)]".utf8))) != nil
        }
        for text in ["0", "-1", "9000000000000000", "-9000000000000000"] { #expect(isRead(Date.self, text), "\(text)") }
        for text in ["9000000000000001", "-9000000000000001", "1.5", "1e12", "\"0\"", "\"2026-01-01\"", "true", "null"]
        {
            #expect(!isRead(Date.self, text), "\(text)")
        }
        for text in ["0", "1", "\"true\"", "null"] { #expect(!isRead(Bool.self, text), "\(text)") }
        for text in ["true", "0", "null", "[]"] { #expect(!isRead(String.self, text), "\(text)") }
        #expect(isRead(URL.self, "\"https://a.example/b\""))
        for text in ["\"\"", "1", "{\"relative\":\"a\"}", "null"] { #expect(!isRead(URL.self, text), "\(text)") }
        #expect(try JSON.decode([Data].self, from: Array(#"["AAH/"]"#.utf8)) == [Data([0, 1, 255])])
        for text in ["\"AAH\"", "\"AA_-\"", "[0]", "null"] { #expect(!isRead(Data.self, text), "\(text)") }
    }

    @Test(
        "Python reads and refuses the same texts",
        .enabled(if: python != nil, "there is no python3 with the package cryptography"))
    func comparedWithPython() throws {
        let python = try #require(python)
        let texts = (Self.accepted + Self.refused).map { Array($0.utf8) } + Self.notText.map { [0x22] + $0 + [0x22] }
        let expected = try JSONDump.ofPython(texts, python) { try runProgram($0, $1, input: $2).output }
        #expect(expected.count == texts.count)
        for (text, expected) in zip(texts, expected) {
            #expect(JSONDump.of(text) == expected, "\(String(decoding: text, as: UTF8.self))")
        }
    }
}
