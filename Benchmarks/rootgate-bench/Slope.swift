import Foundation

/// How steeply figures rise over time.
struct Slope {
    /// The rise of a straight line through the figures, in figures per unit of time.
    let value: Double
    /// With 95 % probability the true rise is no further than this from `value`.
    let margin: Double

    /// Least squares. Each part has a line of its own height, because something has happened between two parts, and all
    /// lines have the same rise. Neighbouring figures are alike, so they count for less: the margin grows with the
    /// correlation of each figure with the one before. `nil` for fewer than ten figures.
    init?(_ parts: [[(time: Double, figure: Double)]]) {
        var (squares, products, count) = (0.0, 0.0, 0)
        var centred: [[(time: Double, figure: Double)]] = []
        for part in parts where part.count > 1 {
            let time = part.reduce(0) { $0 + $1.time } / Double(part.count)
            let figure = part.reduce(0) { $0 + $1.figure } / Double(part.count)
            centred.append(part.map { ($0.time - time, $0.figure - figure) })
            count += part.count
        }
        for point in centred.joined() {
            squares += point.time * point.time
            products += point.time * point.figure
        }
        guard count >= 10, squares > 0 else { return nil }
        value = products / squares
        let rise = value
        let rests = centred.map { $0.map { $0.figure - rise * $0.time } }
        let variance = rests.joined().reduce(0) { $0 + $1 * $1 }
        let neighbours = rests.reduce(0) { sum, rests in
            sum + zip(rests, rests.dropFirst()).reduce(0) { $0 + $1.0 * $1.1 }
        }
        let correlation = variance > 0 ? min(0.98, max(0, neighbours / variance)) : 0
        let freedom = Double(max(1, count - centred.count - 1))
        let error = (variance / freedom / squares * (1 + correlation) / (1 - correlation)).squareRoot()
        margin = 2 * error
    }
}
