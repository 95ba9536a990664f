/// One benchmark's result.
struct Measurement {
    let name: String
    /// Median over the rounds.
    let value: Double
    let unit: String
    /// Lowest and highest round.
    let spread: ClosedRange<Double>
    let rounds: Int
    /// The conditions that are not in the name: connections, threads, sizes.
    let conditions: String
    /// What it is compared with, and the median of that; absent when there is no baseline.
    let baseline: (name: String, value: Double)?
    /// Median of the rounds' own ratios.
    let ratio: Double?

    /// `value` against `baseline` as measured in alternation, one of each a round.
    init(
        _ name: String, unit: String, rounds: [(subject: Double, baseline: Double)], against baseline: String,
        conditions: String = ""
    ) {
        let ratio = median(rounds.map { $0.subject / $0.baseline })
        self.init(
            name, unit, rounds.map(\.subject), conditions, (baseline, median(rounds.map(\.baseline))), ratio)
    }

    /// A figure without a baseline.
    init(_ name: String, unit: String, values: [Double], conditions: String = "") {
        self.init(name, unit, values, conditions, nil, nil)
    }

    private init(
        _ name: String, _ unit: String, _ values: [Double], _ conditions: String,
        _ baseline: (name: String, value: Double)?, _ ratio: Double?
    ) {
        (self.name, self.unit, self.conditions) = (name, unit, conditions)
        (self.baseline, self.ratio) = (baseline, ratio)
        value = median(values)
        spread = (values.min() ?? 0)...(values.max() ?? 0)
        rounds = values.count
    }

    var json: [String: Any] {
        var object: [String: Any] = [
            "name": name, "value": value, "unit": unit, "minimum": spread.lowerBound, "maximum": spread.upperBound,
        ]
        object["baseline"] = baseline.map { ["name": $0.name, "value": $0.value] as [String: Any] }
        object["ratio"] = ratio
        return object
    }
}

func median(_ values: [Double]) -> Double {
    guard !values.isEmpty else { return 0 }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
