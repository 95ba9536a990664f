import Foundation
import LoadHarness

/// A table and the plots of what is in it.
struct SweepResult {
    let header: [String]
    let rows: [[String]]
    let plots: [Plot]
    /// What every point has in common.
    var conditions = ""
}

extension SweepResult {
    /// The figures of `measure` at each of `values`.
    init(
        _ values: [Int], _ what: String, isLogarithmic: Bool = false, unit: String, title: String,
        _ scale: SweepScale, conditions: String, _ measure: (Int) throws -> [Double]
    ) rethrows {
        let figures = try values.enumerated().map { number, value in
            scale.show(what, value, number: number, of: values.count)
            return try measure(value)
        }
        self.conditions = conditions
        header = [what, unit, "lowest to highest"]
        rows = zip(values, figures).map { [grouped($0), rounded(median($1)), lowestToHighest($1)] }
        plots = [
            Plot(
                title: title,
                x: Plot.Axis(label: what, isLogarithmic: isLogarithmic, ticks: values.map { Double($0) }),
                y: Plot.Axis(label: unit), series: [Plot.Series(unit, values, figures)])
        ]
    }
}

extension Plot.Series {
    /// The median at each of `values`, with the lowest and highest round around it.
    init(_ name: String, _ values: [Int], _ figures: [[Double]]) {
        let points = zip(values, figures).map { value, figures in
            Plot.Point(
                x: Double(value), y: median(figures),
                spread: figures.count > 1 ? (figures.min() ?? 0)...(figures.max() ?? 0) : nil)
        }
        self.init(name: name, points: points)
    }
}
