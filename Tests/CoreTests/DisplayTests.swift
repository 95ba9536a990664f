import Core
import TestSupport
import Testing

/// Texts of a peer in logs and on terminals.
struct DisplayTests {
    private static let controls =
        Array(0...0x1f) + Array(0x7f...0x9f) + [0x2028, 0x2029] + Array(0x202a...0x202e) + Array(0x2066...0x2069)

    @Test("Exactly the characters that steer a terminal or a line are control characters")
    func controlCharacters() {
        let found = (0...0x10ffff).compactMap { Unicode.Scalar(UInt32($0)) }.filter(\.isControl).map { Int($0.value) }
        #expect(found == Self.controls)
    }

    @Test("Control characters are escaped, and everything else stays")
    func escaping() {
        #expect("a\u{1b}[31m\nb\u{7f}\u{9b}\u{202e}é🗝".escapingControls == #"a\u001B[31m\u000Ab\u007F\u009B\u202Eé🗝"#)
        #expect("a\r\n\nb".escapingControls(besides: "\n") == "a\\u000D\n\nb")
        for text in ["", "Ana", "é🗝", #"\u001B"#, "e\u{301}", "\u{200d}"] {
            #expect(text.escapingControls.unicodeScalars.elementsEqual(text.unicodeScalars))
        }
    }

    @Test("A beginning ends between two characters, within its bytes")
    func cutting() {
        #expect("abc".prefix(bytesMax: 3) == "abc")
        #expect("abc".prefix(bytesMax: 2) == "ab")
        #expect("abc".prefix(bytesMax: 0) == "")
        for count in 5..<9 { #expect("a🗝🗝".prefix(bytesMax: count) == "a🗝", "\(count)") }
        for count in 1..<4 { #expect("a🗝".prefix(bytesMax: count) == "a", "\(count)") }
        for count in 1..<4 { #expect("ae\u{301}".prefix(bytesMax: count) == "a", "\(count)") }
        let long = "e" + String(repeating: "\u{301}", count: 100)
        #expect(Array(long.prefix(bytesMax: 10).utf8).count == 9, "one character of many scalars is cut between two")
    }

    @Test("The reason of an error is one line without control characters, of at most 512 bytes")
    func reasonOfAnError() {
        #expect(ServiceError(.busy, "no\n\u{1b}[2J\u{202e}").reason == #"no\u000A\u001B[2J\u202E"#)
        #expect(ServiceError(.busy, "no\n").description == #"busy: no\u000A"#)
        let long = ServiceError(.busy, origin: .service, String(repeating: "\n", count: 1000) + "end")
        #expect(long.reason.utf8.count <= Limits.errorTextBytesMax && long.reason.utf8.count > 500)
        #expect(ServiceError(.busy, String(repeating: "🗝", count: 200)).reason == String(repeating: "🗝", count: 128))
    }

    @Test("A number outside of its range is refused with its field")
    func ranges() {
        func error(_ value: Int, _ range: ClosedRange<Int>) -> ServiceError? {
            thrownServiceError { try checkRange(value, range, "limit") }
        }
        for value in [1, 7, 64] { #expect(error(value, 1...64) == nil) }
        for value in [0, -1, .min] { #expect(error(value, 1...64)?.code == .malformedRequest) }
        for value in [65, .max] { #expect(error(value, 1...64)?.code == .limitExceeded) }
        #expect(error(65, 1...64)?.detail == 64)
        #expect(error(65, 1...64)?.reason == "limit is 65, not a number from 1 to 64")
    }
}
