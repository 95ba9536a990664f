/// The bytes of a Swift or C file, each marked as code, comment or literal.
///
/// It knows nested comments, raw and multi-line strings and interpolations. It knows no regular expression literals;
/// the project has none.
struct MarkedText {
    enum Mark: UInt8 { case code, comment, literal }

    private let bytes: [UInt8]
    private let isSwift: Bool
    private var marks: [Mark]
    private var place = 0
    /// How many strings are open around `place`. The code of an interpolation counts as literal.
    private var stringDepth = 0

    init(_ bytes: [UInt8], isSwift: Bool) {
        self.bytes = bytes
        self.isSwift = isSwift
        marks = Array(repeating: .code, count: bytes.count)
        readCode(isInterpolation: false)
    }

    /// The text with every byte of another mark replaced by a space. Line breaks stay.
    func only(_ mark: Mark) -> [UInt8] {
        var text = bytes
        for place in text.indices where marks[place] != mark && text[place] != newline { text[place] = space }
        return text
    }

    private let newline = UInt8(ascii: "\n")
    private let space = UInt8(ascii: " ")

    private func byte(_ offset: Int = 0) -> UInt8 {
        place + offset < bytes.count ? bytes[place + offset] : 0
    }

    private func isAt(_ text: StaticString, _ offset: Int = 0) -> Bool {
        for index in 0..<text.utf8CodeUnitCount where byte(offset + index) != text.utf8Start[index] { return false }
        return true
    }

    private mutating func take(_ count: Int, as mark: Mark) {
        for _ in 0..<count where place < bytes.count {
            marks[place] = stringDepth > 0 ? .literal : mark
            place += 1
        }
    }

    private mutating func readCode(isInterpolation: Bool) {
        var depth = 0
        while place < bytes.count {
            if isAt("//") {
                while place < bytes.count, byte() != newline { take(1, as: .comment) }
            } else if isAt("/*") {
                readBlockComment()
            } else if let hashes = hashesBeforeQuote() {
                readString(hashes: hashes)
            } else if !isSwift, byte() == UInt8(ascii: "'") {
                readCharacter()
            } else {
                if byte() == UInt8(ascii: "(") { depth += 1 }
                if byte() == UInt8(ascii: ")") { depth -= 1 }
                take(1, as: .code)
                if isInterpolation, depth < 0 { return }
            }
        }
    }

    private mutating func readBlockComment() {
        var depth = 0
        repeat {
            if isAt("/*"), isSwift || depth == 0 {
                depth += 1
                take(2, as: .comment)
            } else if isAt("*/") {
                depth -= 1
                take(2, as: .comment)
            } else {
                take(1, as: .comment)
            }
        } while depth > 0 && place < bytes.count
    }

    /// How many number signs stand here before a quotation mark; `nil` when no string begins here.
    private func hashesBeforeQuote() -> Int? {
        var hashes = 0
        while isSwift, byte(hashes) == UInt8(ascii: "#") { hashes += 1 }
        return byte(hashes) == UInt8(ascii: "\"") ? hashes : nil
    }

    private func hasHashes(_ count: Int, at offset: Int) -> Bool {
        (0..<count).allSatisfy { byte(offset + $0) == UInt8(ascii: "#") }
    }

    private mutating func readString(hashes: Int) {
        let quotes = isSwift && isAt("\"\"\"", hashes) ? 3 : 1
        take(hashes + quotes, as: .literal)
        while place < bytes.count {
            let isQuote = quotes == 3 ? isAt("\"\"\"") : isAt("\"")
            if isQuote, hasHashes(hashes, at: quotes) {
                return take(quotes + hashes, as: .literal)
            }
            if byte() == UInt8(ascii: "\\"), hasHashes(hashes, at: 1) {
                let isInterpolation = isSwift && byte(1 + hashes) == UInt8(ascii: "(")
                take(2 + hashes, as: .literal)
                if isInterpolation {
                    stringDepth += 1
                    readCode(isInterpolation: true)
                    stringDepth -= 1
                }
            } else if quotes == 1, byte() == newline {
                return
            } else {
                take(1, as: .literal)
            }
        }
    }

    private mutating func readCharacter() {
        take(1, as: .literal)
        while place < bytes.count, byte() != newline {
            let isEnd = byte() == UInt8(ascii: "'")
            take(byte() == UInt8(ascii: "\\") ? 2 : 1, as: .literal)
            if isEnd { return }
        }
    }
}

/// A word of a text, and the line it stands on.
struct Word: Hashable {
    let text: String
    /// From 1.
    let line: Int
    /// Of its first byte.
    let offset: Int
}

/// The identifiers, keywords and numbers of a text, in order.
func words(of text: [UInt8]) -> [Word] {
    var words: [Word] = []
    var line = 1
    var start: Int?
    for offset in 0...text.count {
        let byte = offset < text.count ? text[offset] : 0
        if isWordByte(byte) {
            if start == nil { start = offset }
        } else if let first = start {
            words.append(
                Word(text: String(decoding: text[first..<offset], as: UTF8.self), line: line, offset: first))
            start = nil
        }
        if byte == UInt8(ascii: "\n") { line += 1 }
    }
    return words
}

func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
        true
    default: false
    }
}
