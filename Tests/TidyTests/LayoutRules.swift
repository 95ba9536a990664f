let lineColumnsMax = 120
let functionLinesMax = 70

/// Lines of code with more than `lineColumnsMax` characters.
func longLines(_ file: TrackedFile) -> [Violation] {
    guard file.isCode else { return [] }
    return file.lines.enumerated().compactMap { index, line in
        // Bytes are counted first: it is quick, and no line has more characters than bytes.
        guard line.utf8.count > lineColumnsMax, line.count > lineColumnsMax else { return nil }
        return Violation(file.path, line: index + 1, "\(line.count) columns")
    }
}

/// Tabs (but those that separate the fields of a table), carriage returns, white space at the end of lines, and ends of
/// files that are not one line break.
func untidySpace(_ file: TrackedFile) -> [Violation] {
    guard !file.bytes.isEmpty else { return [] }
    var found: [Violation] = []
    for (index, line) in file.lines.enumerated() {
        let bytes = line.utf8
        if bytes.contains(UInt8(ascii: "\t")), !file.path.hasSuffix(".tsv") {
            found.append(Violation(file.path, line: index + 1, "a tab"))
        }
        if let last = bytes.last, last == UInt8(ascii: " ") || last == UInt8(ascii: "\r") {
            found.append(Violation(file.path, line: index + 1, "white space at the end"))
        }
    }
    if file.lines.last?.isEmpty == false {
        found.append(Violation(file.path, line: file.lines.count, "no line break at the end of the file"))
    } else if file.lines.dropLast().last?.isEmpty == true {
        found.append(Violation(file.path, line: file.lines.count - 1, "empty lines at the end of the file"))
    }
    return found
}

/// The words by which people mark work that is still to be done. In two parts, so that this file has none of them.
private let notes: Set<String> = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]

/// Notes of work to be done, in whatever kind of file.
func leftNotes(_ file: TrackedFile) -> [Violation] {
    words(of: file.bytes).filter { notes.contains($0.text) }
        .map { Violation(file.path, line: $0.line, "a note of work to be done: \($0.text)") }
}

/// Functions, accessors and closures of more than `functionLinesMax` lines, from the declaration to the closing brace;
/// in Python, to the last line that is indented more than the declaration.
func longFunctions(_ file: TrackedFile) -> [Violation] {
    let bodies: [ClosedRange<Int>]
    switch file.kind {
    case .swift, .c: bodies = functionBodies(in: file.code, isSwift: file.kind == .swift)
    case .python: bodies = pythonFunctions(in: file.lines)
    case .shell, .markdown, .other: return []
    }
    return bodies.compactMap { lines in
        guard lines.count > functionLinesMax else { return nil }
        return Violation(file.path, line: lines.lowerBound, "a function of \(lines.count) lines")
    }
}

/// The lines of every function of a file in Python. A function within another one counts for both.
private func pythonFunctions(in lines: [String]) -> [ClosedRange<Int>] {
    func indentation(_ line: String) -> Int { line.prefix { $0 == " " }.count }
    return lines.indices.compactMap { first in
        let words = lines[first].drop { $0 == " " }
        guard words.hasPrefix("def ") || words.hasPrefix("async def ") else { return nil }
        // The declaration may go on over several lines, whose last one stands where it began.
        let rest = lines[(first + 1)...].prefix { line in
            line.isEmpty || indentation(line) > indentation(lines[first]) || line.drop { $0 == " " }.hasPrefix(")")
        }
        let last = rest.lastIndex { !$0.isEmpty } ?? first
        return first + 1...last + 1
    }
}

/// The lines of every outermost block that is no body of a type, each from its declaration on.
func functionBodies(in code: [UInt8], isSwift: Bool) -> [ClosedRange<Int>] {
    var bodies: [ClosedRange<Int>] = []
    var headStart = 0
    var line = 1
    var place = 0
    while place < code.count {
        switch code[place] {
        case UInt8(ascii: "\n"): line += 1
        case UInt8(ascii: "}"): headStart = place + 1
        case UInt8(ascii: "{"):
            let head = Array(code[headStart..<place])
            let isFunction = isSwift ? !isTypeHead(head) : isFunctionHead(head)
            if isFunction {
                let firstLine = line - linesOfDeclaration(head, isSwift: isSwift)
                var depth = 0
                repeat {
                    if code[place] == UInt8(ascii: "{") { depth += 1 }
                    if code[place] == UInt8(ascii: "}") { depth -= 1 }
                    if code[place] == UInt8(ascii: "\n") { line += 1 }
                    place += 1
                } while depth > 0 && place < code.count
                place -= 1
                bodies.append(firstLine...line)
            }
            headStart = place + 1
        default: break
        }
        place += 1
    }
    return bodies
}

private let typeKeywords: Set<String> = ["struct", "class", "enum", "actor", "protocol", "extension"]

/// Whether what stands before a brace declares a type: a keyword and a name that begins with a capital letter.
private func isTypeHead(_ head: [UInt8]) -> Bool {
    let words = words(of: head).map(\.text)
    return zip(words, words.dropFirst()).contains { typeKeywords.contains($0) && $1.first?.isUppercase == true }
}

/// Whether what stands before a brace in C ends with a list of parameters.
private func isFunctionHead(_ head: [UInt8]) -> Bool {
    head.last { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\n") } == UInt8(ascii: ")")
}

/// How many lines a declaration has before its brace.
private func linesOfDeclaration(_ head: [UInt8], isSwift: Bool) -> Int {
    let words = words(of: head)
    let start: Word?
    if isSwift {
        let keywords: Set<String> = ["func", "init", "deinit", "subscript", "var", "let"]
        start = words.last { keywords.contains($0.text) }
    } else {
        // Declarations of C begin at the margin, and their further lines don't.
        start = words.last { $0.offset == 0 || head[$0.offset - 1] == UInt8(ascii: "\n") }
    }
    guard let start else { return 0 }
    return head[start.offset...].count { $0 == UInt8(ascii: "\n") }
}
