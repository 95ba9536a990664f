/// How large and how long sweeps are.
struct SweepScale {
    let scale: Scale
    /// Whether 100 million roots are among the sizes.
    let isHuge: Bool
    /// How long the soak lasts.
    var soakSeconds = 60.0

    /// Rounds of each point. The round before them does not count.
    var rounds: Int { scale.rounds }

    /// How long a round is, for the conditions of a sweep.
    var round: ProofBench.Condition { .round(seconds: scale.sendingSeconds) }

    /// The rates of the rounds at one point.
    func rates(_ bench: ProofBench, _ traffic: Traffic) throws -> [Double] {
        if !scale.isTiny { _ = try bench.overLoopback(traffic) }
        return try (0..<rounds).map { _ in try bench.overLoopback(traffic) }
    }

    /// What the load of `proof.new.loopback` reaches now, in proofs per second.
    func reference() throws -> Double {
        Machine.settle()
        return median(try rates(ProofBench.withMillionRoots(scale), .batches))
    }

    /// Shows that a sweep measures at the point with this value, of so many points.
    func show(_ what: String, _ value: Int, number: Int, of count: Int) {
        scale.progress.show("\(what) \(grouped(value))", done: Double(number) / Double(count))
    }
}
