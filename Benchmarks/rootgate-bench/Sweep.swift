/// How a figure depends on something, measured at several points.
struct Sweep: Sendable {
    let name: String
    let title: String
    /// What is measured and how, in a sentence or two.
    let about: String
    /// About how many seconds it takes; only the progress that is shown depends on it.
    let seconds: Double
    let run: @Sendable (SweepScale) throws -> SweepResult
}
