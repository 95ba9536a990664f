package import Core

/// What the passes of one worker took. It is counted once a pass, under a lock that only readers of the figures contend
/// for.
final class PassMeter: Sendable {
    private let counted = Lock(PassFigures())

    var figures: PassFigures { counted.withLock { $0 } }

    /// Counts a pass over so many proofs. `stages`: the stages that it had, with their lengths in nanoseconds.
    func count(_ proofs: Int, _ stages: [(stage: PassStage, nanoseconds: UInt64)]) {
        counted.withLock { figures in
            var total: UInt64 = 0
            for (stage, nanoseconds) in stages {
                figures.stages[stage.place].add(nanoseconds)
                total += nanoseconds
            }
            figures.proofs.add(UInt64(proofs))
            figures.durations.add(total)
        }
    }
}

/// Histograms of passes that gave verdicts.
package struct PassFigures: Sendable {
    /// Proofs in a pass.
    package fileprivate(set) var proofs = PowerHistogram(of: .items, exponents: 0...8)
    /// How long a pass took.
    package fileprivate(set) var durations = PowerHistogram.durations
    fileprivate var stages = [PowerHistogram](repeating: .durations, count: PassStage.allCases.count)

    package init() {}

    /// How long a stage took.
    package func durations(of stage: PassStage) -> PowerHistogram { stages[stage.place] }

    mutating func add(_ other: PassFigures) {
        proofs.add(other.proofs)
        durations.add(other.durations)
        for place in stages.indices { stages[place].add(other.stages[place]) }
    }
}

extension PassStage {
    /// The stage's place among all.
    fileprivate var place: Int {
        switch self {
        case .shape: 0
        case .collaboration: 1
        case .challenge: 2
        case .root: 3
        case .membership: 4
        case .signature: 5
        case .spend: 6
        }
    }
}
