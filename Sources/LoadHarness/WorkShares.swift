/// Gives each of some parts of the work its share of the whole, by what it is expected to take: seconds, bytes.
package struct WorkShares {
    /// What all parts take together.
    private let total: Double
    private var done = 0.0

    package init(total: Double) {
        self.total = max(total, .leastNonzeroMagnitude)
    }

    /// The share of the next part, which is expected to take `amount` of the total.
    package mutating func next(_ amount: Double) -> ClosedRange<Double> {
        precondition(amount >= 0, "a part takes less than nothing")
        let begin = min(1, done / total)
        done += amount
        return begin...min(1, done / total)
    }
}
