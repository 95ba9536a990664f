import Foundation

/// What PROTOCOL.md says, or a page of the handbook, read from its Markdown.
package struct ProtocolDocument: Sendable {
    private let lines: [String]

    /// Throws when there is no such file below the manifest's folder.
    package init(_ path: String = "PROTOCOL.md") throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        lines = text.components(separatedBy: "\n")
    }

    /// The cells of every row of the first table that follows a heading with exactly this text; empty
    /// when there is none.
    package func table(under heading: String) -> [[String]] {
        guard
            let start = lines.firstIndex(where: { line in
                line.hasPrefix("#") && line.drop(while: { $0 == "#" || $0 == " " }) == heading
            })
        else { return [] }
        return rows(lines[(start + 1)...].drop { !$0.hasPrefix("|") })
    }

    /// The cells of every row of the first table with exactly this head; empty when there is none.
    package func table(headed head: [String]) -> [[String]] {
        guard let start = lines.firstIndex(where: { $0.hasPrefix("|") && cells(of: $0) == head }) else { return [] }
        return rows(lines[start...])
    }

    private func rows(_ table: ArraySlice<String>) -> [[String]] {
        table.prefix { $0.hasPrefix("|") }.dropFirst(2).map(cells)
    }

    private func cells(of row: String) -> [String] {
        row.components(separatedBy: "|").dropFirst().dropLast().map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// The blocks fenced as `hex NAME`, in order: the name and the bytes, comments dropped. `nil` bytes
    /// stand for a block that is no hexadecimal.
    package var hexBlocks: [(name: String, bytes: [UInt8]?)] {
        blocks(fencedAs: "hex").map { block in
            let words = block.lines.flatMap { $0.prefix { $0 != "#" }.split(separator: " ") }
            let bytes = words.compactMap { $0.utf8.count == 2 ? UInt8($0, radix: 16) : nil }
            return (block.name, bytes.count == words.count ? bytes : nil)
        }
    }

    /// The blocks fenced as `json NAME`, in order.
    package var jsonBlocks: [(name: String, text: String)] {
        blocks(fencedAs: "json").map { ($0.name, $0.lines.joined(separator: "\n")) }
    }

    /// Whether a heading of whatever level has exactly this text.
    package func hasHeading(_ heading: String) -> Bool {
        lines.contains { $0.hasPrefix("#") && $0.drop { $0 == "#" || $0 == " " } == heading }
    }

    private func blocks(fencedAs language: String) -> [(name: String, lines: [String])] {
        var blocks: [(name: String, lines: [String])] = []
        var current: (name: String, lines: [String])?
        for line in lines {
            if line.hasPrefix("```\(language) ") {
                current = (String(line.dropFirst("```\(language) ".count)), [])
            } else if line.hasPrefix("```"), let block = current {
                blocks.append(block)
                current = nil
            } else {
                current?.lines.append(line)
            }
        }
        return blocks
    }
}
