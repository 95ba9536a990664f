import Core
import Foundation
import Testing

@testable import Server

/// Texts and numbers on their way into pages, without a service.
@Suite struct MarkupTests {
    /// Names and titles that try to be more than text.
    static let hostile = [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "&lt;b&gt;",
        "a\u{202e}gpj.exe", "\u{2066}x\u{2069}", "line\nbreak", "\u{0}nul", "</textarea><script>1</script>", "]]>-->",
        "javascript:alert(1)", "\u{2028}", "\u{feff}é👩‍👩‍👧",
    ]

    @Test("What is interpolated stays text, in contents and in values of attributes", arguments: hostile)
    func textsStayText(_ text: String) {
        let html = ("<a title=\"\(text)\">\(text)</a>" as Markup).html
        // Nothing but the literal's own characters can end a value, begin a tag or begin a reference.
        let inner = html.replacingOccurrences(of: "<a title=\"", with: "").replacingOccurrences(of: "</a>", with: "")
        #expect(!inner.replacingOccurrences(of: "\">", with: "").contains { "<>\"'".contains($0) }, "\(html)")
        #expect(!html.unicodeScalars.contains { $0.isControl }, "\(html)")
        let references = ["&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "\"", "&#39;": "'"]
        let escaped = Markup(text: text).html
        #expect(!escaped.contains("&") || references.keys.contains { escaped.contains($0) })
        var back = escaped
        for (name, character) in references where name != "&amp;" {
            back = back.replacingOccurrences(of: name, with: character)
        }
        #expect(back.replacingOccurrences(of: "&amp;", with: "&") == text.escapingControls)
    }

    @Test("Pieces of markup are not escaped again, and numbers are written as they are")
    func piecesAreKept() {
        let piece: Markup = "<b>\("<")</b>"
        #expect(
            ("<p>\(piece)\([piece, piece])\(12)</p>" as Markup).html
                == "<p>\(String(repeating: "<b>&lt;</b>", count: 3))12</p>")
        #expect(Markup(verbatim: "a\nb\u{202e}<").html == "a\nb\u{202e}&lt;")
        #expect(
            Markup.link("x", to: "/shelf", [("account", "a b&c=\"é")]).html
                == "<a href=\"/shelf?account=a%20b%26c%3D%22%C3%A9\">x</a>")
        #expect(
            Markup.time(Date(timeIntervalSince1970: 0)).html
                == "<time datetime=\"1970-01-01T00:00:00Z\">1970-01-01 00:00:00 UTC</time>")
    }

    @Test("A table has a caption and headings, and says so when it is empty")
    func tables() {
        let table = Markup.table("<c>", ["a", "b"], [["1", "2"]], empty: "nothing").html
        #expect(table.contains("<caption>&lt;c&gt;</caption>") && table.contains("<th scope=\"col\">b</th>"))
        #expect(table.contains("<tr><th scope=\"row\">1</th><td>2</td></tr>"))
        #expect(Markup.table("c", ["a"], [], empty: "nothing").html == "<p class=\"empty\">nothing</p>")
    }

    @Test("Fields of forms and queries are decoded, and malformed ones are none")
    func fields() throws {
        let fields = try #require(FormFields("a=1%2B+2&b=%C3%A9&b=second&c&=x&&d==".utf8))
        #expect(fields["a"] == "1+ 2" && fields["b"] == "é" && fields["c"] == "" && fields[""] == "x")
        #expect(fields["d"] == "=" && fields["e"] == nil)
        for bad in ["a=%", "a=%4", "a=%g1", "a=%FF", "%C3=1"] { #expect(FormFields(bad.utf8) == nil, "\(bad)") }
        for text in Self.hostile {
            #expect(FormFields("x=\(FormFields.encoded(text))".utf8)?["x"] == text)
        }
    }

    @Test("A plot's ceiling is a round number, and its line has gaps where there are no values")
    func plots() {
        for (value, ceiling) in [(0.0, 1.0), (0.3, 0.5), (1, 1), (1.2, 2), (4, 5), (7, 10), (1234, 2000), (.nan, 1)] {
            #expect(abs(TimePlot.ceiling(of: value) - ceiling) < 1e-9 * ceiling, "\(value)")
        }
        let plot = TimePlot(
            title: "Proofs <", lines: [TimePlot.Line(name: "a", values: [nil, 0, 5, nil, 10])],
            text: { "\(Int($0))/s" }, momentsMax: 5, begin: "1 min ago")
        let html = plot.figure.html
        #expect(html.contains("d=\"M80 92h0L160 50M320 8h0\""), "\(html)")
        #expect(html.contains("<figcaption>Proofs &lt;</figcaption>") && html.contains("<b>10/s</b>"))
        #expect(plot.description == "Proofs <, since 1 min ago. a: from 0/s to 10/s.")
        let empty = TimePlot(
            title: "t", lines: [TimePlot.Line(name: "a", values: [])], text: { "\($0)" }, momentsMax: 5, begin: "b")
        #expect(empty.figure.html.contains("d=\"\"") && empty.description == "t, since b. a: no values.")
    }

    @Test("Times and durations have the unit that suits them")
    func units() {
        #expect(
            OverviewPage.time(4.2e-7) == "0.4 µs" && OverviewPage.time(0.0123) == "12 ms"
                && OverviewPage.time(2) == "2.0 s")
        #expect(OverviewPage.duration(59) == "59 s" && OverviewPage.duration(600) == "10 min")
        #expect(OverviewPage.duration(61) == "1 min 1 s" && OverviewPage.duration(7260) == "2 h 1 min")
        #expect(OverviewPage.duration(90_000) == "1 d 1 h")
        #expect(
            OverviewPage.count(1234) == "1,234" && OverviewPage.count(1.25) == "1.2" && OverviewPage.count(2) == "2")
    }
}
