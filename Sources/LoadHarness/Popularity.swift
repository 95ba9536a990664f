import Foundation

/// Zipf's law: of some things, number i (from 0) is chosen in proportion to 1 / (i + 1)^exponent.
struct Popularity: Sendable {
    /// The parts of the first things, one more in each; the last is 1.
    private let sums: [Double]

    /// `count` is at least 1, `exponent` is not negative; 0 makes all alike.
    init(count: Int, exponent: Double) {
        precondition(count > 0 && exponent >= 0, "there is nothing to choose")
        var sum = 0.0
        let sums = (1...count).map { number in
            sum += pow(Double(number), -exponent)
            return sum
        }
        self.sums = sums.map { $0 / sum }
    }

    /// The chosen number. `random`: from 0 to 1, without 1.
    func choice(_ random: Double) -> Int {
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] > random { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
