package import Core

/// Histograms of the commits that have succeeded.
package struct CommitFigures: Sendable {
    /// Mutations in a commit.
    package private(set) var mutations = PowerHistogram(of: .items, exponents: 0...12)
    /// How long the mutations of a commit took to be applied, the time in which others joined it included.
    package private(set) var applying = PowerHistogram.durations
    /// How long a commit took to be written and made durable.
    package private(set) var writing = PowerHistogram.durations

    /// Counts a commit. Its times are in nanoseconds.
    mutating func count(mutations count: Int, applying applied: UInt64, writing written: UInt64) {
        mutations.add(UInt64(count))
        applying.add(applied)
        writing.add(written)
    }
}
