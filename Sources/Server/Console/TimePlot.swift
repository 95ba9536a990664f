import Foundation

/// Lines over time, as SVG that stands in a page. It has no style of its own: classes say which line is which.
struct TimePlot {
    struct Line {
        let name: String
        /// One value for each moment, the oldest first; `nil` where there is none. The line has a gap there.
        let values: [Double?]
    }

    /// What is drawn, for people.
    let title: String
    let lines: [Line]
    /// A value with its unit.
    let text: (Double) -> String
    /// Moments from the left edge to the right one. The last value is at the right edge.
    let momentsMax: Int
    /// When the left edge is, for people.
    let begin: String

    private static let (width, height, bottom) = (320.0, 112.0, 92.0)
    private static let top = 8.0

    /// The plot with its title, the present values, and a sentence for whoever does not see it.
    var figure: Markup {
        let known = lines.map { line in (line: line, now: line.values.last ?? nil) }
        let legend = known.enumerated().map { number, entry -> Markup in
            """
            <li class="l\(number)"><svg class="key" viewBox="0 0 14 8" width="14" height="8" aria-hidden="true">\
            <path d="M0 4H14"/></svg>\(entry.line.name) <b>\(entry.now.map(text) ?? "–")</b></li>
            """
        }
        return """
            <figure><figcaption>\(title)</figcaption><ul class="legend">\(legend)</ul>\(drawing)</figure>
            """
    }

    /// What a reader hears in place of the drawing.
    var description: String {
        let parts = lines.map { line in
            let values = line.values.compactMap { $0 }
            guard let least = values.min(), let most = values.max() else { return "\(line.name): no values" }
            return "\(line.name): from \(text(least)) to \(text(most))"
        }
        return "\(title), since \(begin). \(parts.joined(separator: "; "))."
    }

    private var drawing: Markup {
        let ceiling = TimePlot.ceiling(of: lines.flatMap { $0.values.compactMap { $0 } }.max() ?? 0)
        let paths = lines.enumerated().map { number, line in
            "<path class=\"l\(number)\" d=\"\(path(of: line, ceiling))\"/>" as Markup
        }
        return """
            <svg class="plot" viewBox="0 0 \(Int(TimePlot.width)) \(Int(TimePlot.height))" role="img" \
            aria-label="\(description)"><path class="grid" d="M0 8H320M0 50H320M0 92H320"/>\(paths)\
            <text class="axis" x="0" y="20">\(text(ceiling))</text>\
            <text class="axis" x="0" y="107">\(begin)</text>\
            <text class="axis end" x="320" y="107">now</text></svg>
            """
    }

    /// The line as data of a path. A value that has no neighbour is a dot.
    private func path(of line: Line, _ ceiling: Double) -> String {
        let values = line.values.suffix(momentsMax)
        let step = TimePlot.width / Double(max(1, momentsMax - 1))
        var x = TimePlot.width - step * Double(values.count - 1)
        var data = ""
        var isDrawing = false
        for value in values {
            if let value {
                let share = max(0, min(1, value / ceiling))
                let y = TimePlot.bottom - share * (TimePlot.bottom - TimePlot.top)
                data += (isDrawing ? "L" : "M") + TimePlot.number(x) + " " + TimePlot.number(y)
                if !isDrawing { data += "h0" }
            }
            isDrawing = value != nil
            x += step
        }
        return data
    }

    /// The least of 1, 2 and 5 times a power of ten that is not below the value; 1 for nothing.
    static func ceiling(of value: Double) -> Double {
        guard value > 0, value.isFinite else { return 1 }
        let power = pow(10, log10(value).rounded(.down))
        return [1.0, 2, 5, 10].map { $0 * power }.first { $0 >= value } ?? 10 * power
    }

    private static func number(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(abs(tenths % 10))"
    }
}
