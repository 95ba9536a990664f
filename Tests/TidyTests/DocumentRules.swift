import Foundation

let proseCharactersMax = 500
let readmeLinesMax = 90

/// Lines of prose that are too long to be read, and a README that is too long to be begun.
func wallsOfText(_ file: TrackedFile) -> [Violation] {
    guard file.kind == .markdown else { return [] }
    var found: [Violation] = []
    for (index, line) in file.lines.enumerated() where !line.hasPrefix("|") && line.count > proseCharactersMax {
        found.append(Violation(file.path, line: index + 1, "a paragraph of \(line.count) characters"))
    }
    let lines = file.lines.count - 1
    if file.path == "README.md", lines > readmeLinesMax {
        found.append(Violation(file.path, "\(lines) lines; \(readmeLinesMax) are allowed"))
    }
    return found
}

private let folders = ["Sources/", "Tests/", "Benchmarks/", "deploy/", ".github/", ".ci/"]

/// Paths of this repository that comments, scripts and documents name and that don't exist; links between documents
/// that lead nowhere; files of Swift that ARCHITECTURE.md names and nobody has.
func danglingPaths(_ files: [TrackedFile]) -> [Violation] {
    let paths = Set(files.map(\.path))
    var places = paths
    for path in paths {
        var folder = path[...]
        while let slash = folder.lastIndex(of: "/") {
            folder = folder[..<slash]
            places.insert(String(folder))
        }
    }
    return files.flatMap { file in
        var found = namedPaths(in: file).filter { !exists($0.path, among: places) }
            .map { Violation(file.path, line: $0.line, "\($0.path) does not exist") }
        if file.kind == .markdown { found += danglingLinks(in: file, among: places) }
        if file.path == "ARCHITECTURE.md" { found += danglingFiles(in: file, among: paths) }
        return found
    }
}

/// A path with a star stands for every path that begins and ends like it.
private func exists(_ path: String, among places: Set<String>) -> Bool {
    guard let star = path.firstIndex(of: "*") else { return places.contains(path) }
    let (start, end) = (path[..<star], path[path.index(after: star)...])
    return places.contains { $0.hasPrefix(start) && $0.hasSuffix(end) }
}

/// The paths that a document, a script or the comments of a source file name.
func namedPaths(in file: TrackedFile) -> [(path: String, line: Int)] {
    let text: [UInt8]
    switch file.kind {
    case .swift, .c: text = file.comments
    case .markdown, .shell, .python: text = file.bytes
    case .other: return []
    }
    // The tidy tests speak of paths that don't exist, and the change log of those that don't exist any more.
    guard !file.path.hasPrefix("Tests/TidyTests/"), file.path != "CHANGELOG.md" else { return [] }
    var named: [(path: String, line: Int)] = []
    for (index, line) in text.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
        for word in line.split(whereSeparator: { !isPathByte($0) }) {
            var path = String(decoding: word, as: UTF8.self)
            guard folders.contains(where: { path.hasPrefix($0) }) else { continue }
            while let last = path.last, last == "." || last == "/" { path.removeLast() }
            named.append((path, index + 1))
        }
    }
    return named
}

private func isPathByte(_ byte: UInt8) -> Bool {
    isWordByte(byte) || "/.-*+".utf8.contains(byte)
}

/// Links to files from a document's own folder. Links to the web and within the document are left alone.
private func danglingLinks(in file: TrackedFile, among places: Set<String>) -> [Violation] {
    var found: [Violation] = []
    let folder = file.path.split(separator: "/").dropLast()
    for (index, line) in file.lines.enumerated() {
        for piece in line.components(separatedBy: "](").dropFirst() {
            let link = piece.prefix { $0 != ")" && $0 != "#" }
            guard !link.isEmpty, !link.contains("://"), !link.contains(" "), !link.hasPrefix("doc:") else { continue }
            var parts = Array(folder)
            for part in link.split(separator: "/") where part != "." {
                if part == ".." { _ = parts.popLast() } else { parts.append(part) }
            }
            let path = parts.joined(separator: "/")
            if !places.contains(path) {
                found.append(Violation(file.path, line: index + 1, "a link leads to \(path), which does not exist"))
            }
        }
    }
    return found
}

/// Names like `Limits.swift` or `Core/Limits.swift` that no file ends with.
private func danglingFiles(in file: TrackedFile, among paths: Set<String>) -> [Violation] {
    var found: [Violation] = []
    for (index, line) in file.lines.enumerated() {
        for word in line.utf8.split(whereSeparator: { !isPathByte($0) }) {
            let name = String(decoding: word, as: UTF8.self)
            guard name.hasSuffix(".swift") || name.hasSuffix(".h") || name.hasSuffix(".c"), !name.contains("*") else {
                continue
            }
            if !paths.contains(where: { $0 == name || $0.hasSuffix("/" + name) }) {
                found.append(Violation(file.path, line: index + 1, "no file is named \(name)"))
            }
        }
    }
    return found
}
