import Foundation

/// A plot of lines and points as one SVG file: dark on a light background of its own, so that it is readable on pages
/// of any colour.
package struct Plot {
    package struct Axis {
        package let label: String
        package let isLogarithmic: Bool
        /// Where the ticks are; without it, the values decide.
        package let ticks: [Double]?
        /// The text at each tick; without it, the tick's number.
        package let names: [String]?

        package init(
            label: String, isLogarithmic: Bool = false, ticks: [Double]? = nil, names: [String]? = nil
        ) {
            precondition(names.map { $0.count == ticks?.count } ?? true, "a tick has no name, or a name no tick")
            (self.label, self.isLogarithmic, self.ticks, self.names) = (label, isLogarithmic, ticks, names)
        }
    }

    package struct Point {
        package let x: Double
        package let y: Double
        /// Lowest and highest round, drawn as a whisker.
        package let spread: ClosedRange<Double>?

        package init(x: Double, y: Double, spread: ClosedRange<Double>? = nil) {
            (self.x, self.y, self.spread) = (x, y, spread)
        }
    }

    package struct Series {
        package let name: String
        package let points: [Point]

        package init(name: String, points: [Point]) {
            (self.name, self.points) = (name, points)
        }
    }

    package let title: String
    package let x: Axis
    package let y: Axis
    package let series: [Series]

    package init(title: String, x: Axis, y: Axis, series: [Series]) {
        (self.title, self.x, self.y, self.series) = (title, x, y, series)
    }

    /// The plot as a file.
    package var svg: String {
        let xRuler = Ruler(x, values: series.flatMap { $0.points.map(\.x) }, from: Box.left + 16, to: Box.right - 16)
        let ys = series.flatMap { $0.points.flatMap { [$0.y, $0.spread?.lowerBound, $0.spread?.upperBound] } }
        let yRuler = Ruler(
            y, values: ys.compactMap { $0 } + (y.isLogarithmic ? [] : [0]), from: Box.bottom, to: Box.top)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(whole(Box.width)) \(whole(Box.height))" \
            width="\(whole(Box.width))" height="\(whole(Box.height))" role="img" \
            font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#24292f">
            <title>\(escaped(title))</title>
            <rect width="100%" height="100%" rx="6" fill="#ffffff"/>
            \(text(title, at: Box.left, 26, "font-size=\"15\" font-weight=\"bold\""))
            \(axes(xRuler, yRuler))
            \(legend())
            \(series.enumerated().map { curve($1, number: $0, xRuler, yRuler) }.joined(separator: "\n"))
            </svg>

            """
    }

    /// The most points of a series that are marked on its line.
    private static let markedPointsMax = 60

    // MARK: Parts

    private enum Box {
        static let width = 760.0
        static let height = 420.0
        static let left = 84.0
        static let right = 736.0
        static let top = 70.0
        static let bottom = 356.0
    }

    /// Distinct for people with any kind of colour vision (Okabe and Ito).
    private static let colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"]

    private func axes(_ xRuler: Ruler, _ yRuler: Ruler) -> String {
        var parts: [String] = []
        for tick in yRuler.ticks {
            let place = yRuler.place(of: tick)
            parts.append(line(Box.left, place, Box.right, place, "stroke=\"#d8dee4\""))
            parts.append(text(y.name(of: tick), at: Box.left - 8, place + 4.5, "text-anchor=\"end\""))
        }
        for tick in xRuler.ticks {
            let place = xRuler.place(of: tick)
            parts.append(line(place, Box.bottom, place, Box.bottom + 5, "stroke=\"#57606a\""))
            parts.append(text(x.name(of: tick), at: place, Box.bottom + 20, "text-anchor=\"middle\""))
        }
        parts.append(line(Box.left, Box.bottom, Box.right, Box.bottom, "stroke=\"#57606a\""))
        let middle = (Box.left + Box.right) / 2
        parts.append(text(x.label, at: middle, Box.bottom + 46, "text-anchor=\"middle\""))
        let height = (Box.top + Box.bottom) / 2
        parts.append(
            text(y.label, at: 22, height, "text-anchor=\"middle\" transform=\"rotate(-90 22 \(one(height)))\""))
        return parts.joined(separator: "\n")
    }

    /// The names of several series above them; a single series is named by the title.
    private func legend() -> String {
        guard series.count > 1 else { return "" }
        var place = Box.left
        return series.enumerated().map { number, series in
            defer { place += 34 + 8 * Double(series.name.count) }
            let colour = Plot.colours[number % Plot.colours.count]
            return line(place, 48, place + 20, 48, "stroke=\"\(colour)\" stroke-width=\"2.5\"")
                + text(series.name, at: place + 26, 52.5)
        }.joined(separator: "\n")
    }

    private func curve(_ series: Series, number: Int, _ xRuler: Ruler, _ yRuler: Ruler) -> String {
        let colour = Plot.colours[number % Plot.colours.count]
        let places = series.points.map { (x: xRuler.place(of: $0.x), y: yRuler.place(of: $0.y), spread: $0.spread) }
        let path = places.map { "\(one($0.x)),\(one($0.y))" }.joined(separator: " ")
        var parts = ["<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"2.5\"/>"]
        for place in places {
            if let spread = place.spread {
                let (low, high) = (yRuler.place(of: spread.lowerBound), yRuler.place(of: spread.upperBound))
                let stroke = "stroke=\"\(colour)\" stroke-opacity=\"0.45\" stroke-width=\"5\""
                parts.append(line(place.x, low, place.x, high, stroke))
            }
            // Many of them would hide the line.
            guard places.count <= Plot.markedPointsMax else { continue }
            parts.append("<circle cx=\"\(one(place.x))\" cy=\"\(one(place.y))\" r=\"3.5\" fill=\"\(colour)\"/>")
        }
        return parts.joined(separator: "\n")
    }

    private func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ attributes: String) -> String {
        "<line x1=\"\(one(x1))\" y1=\"\(one(y1))\" x2=\"\(one(x2))\" y2=\"\(one(y2))\" \(attributes)/>"
    }

    private func text(_ content: String, at x: Double, _ y: Double, _ attributes: String = "") -> String {
        "<text x=\"\(one(x))\" y=\"\(one(y))\" \(attributes)>\(escaped(content))</text>"
    }

    private func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }

    private func one(_ value: Double) -> String { String(format: "%.1f", value) }
    private func whole(_ value: Double) -> String { String(format: "%.0f", value) }
}

extension Plot {
    /// Where values are on an axis.
    struct Ruler {
        let ticks: [Double]
        private let isLogarithmic: Bool
        private let low: Double
        private let high: Double
        private let from: Double
        private let to: Double

        init(_ axis: Axis, values: [Double], from: Double, to: Double) {
            isLogarithmic = axis.isLogarithmic
            let values = values.filter { $0.isFinite && (!axis.isLogarithmic || $0 > 0) }
            let lowest = values.min() ?? 1
            let highest = values.max() ?? 1
            ticks =
                axis.ticks
                ?? (axis.isLogarithmic
                    ? Ruler.logarithmicTicks(lowest, highest) : Ruler.linearTicks(lowest, highest))
            // Chosen ticks enclose the values; given ones need not.
            low = min(lowest, ticks.first ?? lowest)
            high = max(highest, ticks.last ?? highest)
            self.from = from
            self.to = to
        }

        func place(of value: Double) -> Double {
            guard high > low else { return (from + to) / 2 }
            let share =
                isLogarithmic
                ? log(max(value, low) / low) / log(high / low)
                : (value - low) / (high - low)
            return from + (to - from) * share
        }

        /// Multiples of 1, 2, 2.5 or 5 times a power of ten, five to eleven of them, around all values.
        static func linearTicks(_ low: Double, _ high: Double) -> [Double] {
            guard high > low else { return [low] }
            let power = pow(10, floor(log10((high - low) / 4)))
            let step = power * ([5, 2.5, 2, 1].first { (high - low) / (power * $0) >= 4 } ?? 1)
            return Array(stride(from: floor(low / step), through: ceil(high / step), by: 1)).map { $0 * step }
        }

        /// Powers of ten around all values; with twos and fives between them where there are few.
        static func logarithmicTicks(_ low: Double, _ high: Double) -> [Double] {
            let decades = floor(log10(low))...ceil(log10(high))
            let factors: [Double] = decades.upperBound - decades.lowerBound > 3 ? [1] : [1, 2, 5]
            let all = stride(from: decades.lowerBound, through: decades.upperBound, by: 1).flatMap { decade in
                factors.map { $0 * pow(10, decade) }
            }
            let first = all.lastIndex { $0 <= low } ?? 0
            let last = all.firstIndex { $0 >= high } ?? all.count - 1
            return Array(all[first...max(first, last)])
        }
    }
}

extension Plot.Axis {
    /// The text at a tick.
    fileprivate func name(of tick: Double) -> String {
        guard let names, let place = ticks?.firstIndex(of: tick) else { return short(tick) }
        return names[place]
    }
}

/// A number as axes show it: 2.5 and 1,024 in full, 1,500,000 as "1.5 M".
private func short(_ value: Double) -> String {
    let (size, unit) = [(1e9, " G"), (1e6, " M"), (1e3, " k")].first { abs(value) >= $0.0 } ?? (1, "")
    let isShort = size == 1 || (10 * value / size).rounded() == 10 * value / size
    return isShort ? String(format: "%g", value / size) + unit : Int(value).inThousands
}
