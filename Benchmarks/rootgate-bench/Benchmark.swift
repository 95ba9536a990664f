import LoadHarness

/// A benchmark: one measurement under one name.
struct Benchmark: Sendable {
    let name: String
    /// What is measured, in a few words.
    let about: String
    /// About how many seconds it takes, and the share of them that is set-up. Only the progress that is shown depends
    /// on them.
    let seconds: Double
    let setUpShare: Double
    private let body: @Sendable (Scale) throws -> Measurement

    init(
        _ name: String, _ about: String, seconds: Double = 6, setUpShare: Double = 0,
        _ body: @escaping @Sendable (Scale) throws -> Measurement
    ) {
        (self.name, self.about, self.seconds, self.setUpShare) = (name, about, seconds, setUpShare)
        self.body = body
    }

    /// Measures. Throws `SetUpTooLong` when the machine is too slow for it, and what the service throws.
    func run(_ scale: Scale) throws -> Measurement {
        try body(scale.beginning(setUpShare: setUpShare))
    }
}
