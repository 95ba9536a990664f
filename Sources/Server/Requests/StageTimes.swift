/// How long a request was in each stage of its life. A value that allocates nothing.
struct StageTimes: Sendable {
    private(set) var stage: RequestStage
    /// When the stage began, in nanoseconds of a monotonic clock.
    private var began: UInt64
    private var totals = InlineArray<6, UInt64>(repeating: 0)

    /// Begins with `stage`. `now`: nanoseconds of a monotonic clock.
    init(_ stage: RequestStage = .decoding, now: UInt64) {
        self.stage = stage
        began = now
    }

    /// Ends the present stage, and begins another one.
    mutating func begin(_ stage: RequestStage, now: UInt64) {
        totals[self.stage.place] += now - min(now, began)
        (self.stage, began) = (stage, now)
    }

    /// Nanoseconds in a stage, as far as it has ended.
    subscript(_ stage: RequestStage) -> UInt64 { totals[stage.place] }

    /// Nanoseconds in all stages but the wait for a change.
    var busy: UInt64 { RequestStage.allCases.reduce(0) { $1 == .suspended ? $0 : $0 + self[$1] } }
}

extension RequestStage {
    /// The stage's place among all.
    var place: Int {
        switch self {
        case .decoding: 0
        case .queued: 1
        case .working: 2
        case .committing: 3
        case .suspended: 4
        case .answering: 5
        }
    }
}
