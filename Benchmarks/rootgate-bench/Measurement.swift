import Dispatch

/// One benchmark's result.
struct Measurement {
    let name: String
    /// Median over the rounds.
    let value: Double
    let unit: String
    /// Lowest and highest round.
    let spread: ClosedRange<Double>
    /// What it is compared with, and that one's median; absent where a figure stands for itself.
    let baseline: (name: String, value: Double)?
    /// Median of the rounds' own ratios.
    let ratio: Double?

    /// `value` against `baseline` as measured in alternation, one of each a round.
    init(_ name: String, unit: String, rounds: [(subject: Double, baseline: Double)], against baseline: String) {
        self.name = name
        self.unit = unit
        let subjects = rounds.map(\.subject)
        value = median(subjects)
        spread = (subjects.min() ?? 0)...(subjects.max() ?? 0)
        self.baseline = (baseline, median(rounds.map(\.baseline)))
        ratio = median(rounds.map { $0.subject / $0.baseline })
    }

    /// A figure without a yardstick.
    init(_ name: String, unit: String, values: [Double]) {
        self.name = name
        self.unit = unit
        value = median(values)
        spread = (values.min() ?? 0)...(values.max() ?? 0)
        baseline = nil
        ratio = nil
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

/// How large and how long the benchmarks are: the real sizes, or tiny ones that only show that they run.
struct Scale {
    let isTiny: Bool

    var rounds: Int { isTiny ? 1 : 5 }
    var seconds: Double { isTiny ? 0.02 : 0.4 }

    func size(_ full: Int, tiny: Int) -> Int { isTiny ? tiny : full }

    /// Runs both in alternation, one of each a round, after one of each that does not count.
    func alternate(
        rounds count: Int? = nil, _ subject: () throws -> Double, _ baseline: () throws -> Double
    ) rethrows -> [(subject: Double, baseline: Double)] {
        if !isTiny { _ = (try subject(), try baseline()) }
        var rounds: [(subject: Double, baseline: Double)] = []
        for _ in 0..<(count ?? self.rounds) { rounds.append((try subject(), try baseline())) }
        return rounds
    }

    /// The results of all rounds, after a call that does not count.
    func repeated(_ body: () throws -> Double) rethrows -> [Double] {
        if !isTiny { _ = try body() }
        return try (0..<rounds).map { _ in try body() }
    }

    /// Calls of `body` per second times `items`, over about `seconds`.
    func rate(items: Int, _ body: () throws -> Void) rethrows -> Double {
        let begin = DispatchTime.now().uptimeNanoseconds
        var calls = 0
        while true {
            try body()
            calls += 1
            let elapsed = Double(DispatchTime.now().uptimeNanoseconds - begin) / 1e9
            if elapsed >= seconds { return Double(calls * items) / elapsed }
        }
    }
}

/// Seconds that `body` takes.
func seconds(_ body: () throws -> Void) rethrows -> Double {
    let begin = DispatchTime.now().uptimeNanoseconds
    try body()
    return Double(DispatchTime.now().uptimeNanoseconds - begin) / 1e9
}
