import Foundation

/// A file of the repository.
struct TrackedFile: Sendable {
    /// From the repository's root, with slashes.
    let path: String
    let bytes: [UInt8]
    let lines: [String]
    let kind: Kind
    /// The text of a Swift or C file with spaces in place of comments and literals; empty for other files.
    let code: [UInt8]
    /// The text of a Swift or C file with spaces in place of everything but comments; empty for other files.
    let comments: [UInt8]
    /// The words of `code`.
    let codeWords: [Word]

    init(_ path: String, _ bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
        lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        kind = Kind(path, firstLine: lines.first ?? "")
        let marked = kind == .swift || kind == .c ? MarkedText(bytes, isSwift: kind == .swift) : nil
        code = marked?.only(.code) ?? []
        comments = marked?.only(.comment) ?? []
        codeWords = words(of: code)
    }

    /// A sample for the tests of the rules.
    init(_ path: String, _ text: String) {
        self.init(path, Array(text.utf8))
    }

    /// The last part of the path.
    var name: String { path.split(separator: "/").last.map(String.init) ?? path }

    /// What the file is written in, as far as the rules tell files apart.
    enum Kind {
        case swift, c, python, shell, markdown, other

        fileprivate init(_ path: String, firstLine: String) {
            self =
                switch path.split(separator: ".").last {
                case "swift": .swift
                case "c", "h": .c
                case "py": .python
                case "md": .markdown
                // Scripts of the shell have no suffix, and one is sourced by the others.
                default: firstLine.hasPrefix("#!") || path == "deploy/prerequisites" ? .shell : .other
                }
        }
    }

    var isCode: Bool { [.swift, .c, .python, .shell].contains(kind) }
}

/// A place that breaks a rule.
struct Violation: Hashable, CustomStringConvertible {
    let path: String
    /// From 1; 0 when the whole file is meant.
    let line: Int
    let reason: String

    init(_ path: String, line: Int = 0, _ reason: String) {
        self.path = path
        self.line = line
        self.reason = reason
    }

    var description: String { line > 0 ? "\(path):\(line): \(reason)" : "\(path): \(reason)" }
}

/// The files that git tracks, as they stand in the working tree.
enum Repository {
    /// The files' texts, empty for pictures and what else is no text; `nil` when this is no repository, or there is no
    /// git.
    static let files: [TrackedFile]? = {
        guard let paths = trackedPaths() else { return nil }
        return paths.compactMap { path in
            guard let data = try? Data(contentsOf: root.appendingPathComponent(path)) else { return nil }
            return TrackedFile(path, data.contains(0) ? [] : Array(data))
        }
    }()

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func trackedPaths() -> [String]? {
        let git = Process()
        git.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        git.arguments = ["git", "-C", root.path, "ls-files", "-z"]
        let output = Pipe()
        git.standardOutput = output
        git.standardError = FileHandle.nullDevice
        do {
            try git.run()
        } catch {
            return nil
        }
        let listed = output.fileHandleForReading.readDataToEndOfFile()
        git.waitUntilExit()
        guard git.terminationStatus == 0 else { return nil }
        return listed.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }
}
