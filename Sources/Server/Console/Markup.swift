import Core
import Foundation

/// A piece of HTML. A literal is markup as it stands. What is interpolated into it is text, unless it is a `Markup`.
///
///     let row: Markup = "<td>\(name)</td>"
struct Markup: ExpressibleByStringInterpolation, Sendable {
    /// Collects the parts of an interpolation.
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var html: String

        init(literalCapacity: Int, interpolationCount: Int) {
            html = ""
            html.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        mutating func appendLiteral(_ literal: StaticString) { html += literal.description }

        /// A text, as people may see it: see `Markup.init(text:)`.
        mutating func appendInterpolation(_ text: String) { html += Markup(text: text).html }

        mutating func appendInterpolation(_ number: some BinaryInteger) { html += "\(number)" }

        mutating func appendInterpolation(_ markup: Markup) { html += markup.html }

        /// Pieces one behind the other.
        mutating func appendInterpolation(_ pieces: [Markup]) { for piece in pieces { html += piece.html } }
    }

    let html: String

    init(stringLiteral literal: StaticString) { html = literal.description }

    init(stringInterpolation: StringInterpolation) { html = stringInterpolation.html }

    /// A text that whoever wrote it can't make to markup. Characters that steer the layout of a line are shown as
    /// `\u202E`.
    init(text: String) { self.init(verbatim: text.escapingControls) }

    /// A text as it is, in a place that shows every character, such as a field of a form.
    init(verbatim text: String) {
        var html = ""
        html.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": html += "&amp;"
            case "<": html += "&lt;"
            case ">": html += "&gt;"
            case "\"": html += "&quot;"
            case "'": html += "&#39;"
            default: html.unicodeScalars.append(scalar)
            }
        }
        self.html = html
    }

    static func + (a: Markup, b: Markup) -> Markup { "\(a)\(b)" }
}

extension Markup {
    /// A table with a caption. `columns`: their headings. The first cell of a row is the row's heading.
    static func table(_ caption: String, _ columns: [String], _ rows: [[Markup]], empty: String) -> Markup {
        guard !rows.isEmpty else { return "<p class=\"empty\">\(empty)</p>" }
        let headings = columns.map { "<th scope=\"col\">\($0)</th>" as Markup }
        let body = rows.map { cells -> Markup in
            let rest = cells.dropFirst().map { "<td>\($0)</td>" as Markup }
            return "<tr><th scope=\"row\">\(cells[0])</th>\(rest)</tr>"
        }
        return """
            <div class="scroll" role="region" aria-label="\(caption)" tabindex="0"><table><caption>\(caption)</caption>\
            <thead><tr>\(headings)</tr></thead><tbody>\(body)</tbody></table></div>
            """
    }

    /// Names and their values.
    static func list(_ entries: [(name: String, value: Markup)]) -> Markup {
        let rows = entries.map { "<div><dt>\($0.name)</dt><dd>\($0.value)</dd></div>" as Markup }
        return "<dl>\(rows)</dl>"
    }

    /// A text that somebody has chosen: its direction of writing does not spread.
    static func name(_ text: String) -> Markup { "<bdi>\(text)</bdi>" }

    /// The same, or `other` when there is nothing to be seen.
    static func name(_ text: String?, or other: Markup) -> Markup {
        text.flatMap { $0.isUnseen ? nil : name($0) } ?? other
    }

    /// A moment to the second, in UTC.
    static func time(_ date: Date) -> Markup {
        let machine = date.ISO8601Format()
        let people = machine.replacingOccurrences(of: "T", with: " ").replacingOccurrences(of: "Z", with: " UTC")
        return "<time datetime=\"\(machine)\">\(people)</time>"
    }

    /// A link to a page of the console. `fields`: its query.
    static func link(_ label: Markup, to path: String, _ fields: [(name: String, value: String)]) -> Markup {
        let query = fields.map { "\($0.name)=\(FormFields.encoded($0.value))" }.joined(separator: "&")
        return "<a href=\"\(query.isEmpty ? path : path + "?" + query)\">\(label)</a>"
    }
}

extension String {
    /// Whether nothing of it can be seen: it is empty, or has spaces and characters without a shape only.
    var isUnseen: Bool {
        unicodeScalars.allSatisfy { $0.properties.isWhitespace || $0.properties.isDefaultIgnorableCodePoint }
    }
}
