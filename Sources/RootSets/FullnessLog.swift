import Core

/// Tells a log when additions begin to be refused for lack of room, and when there is room again: a pair of lines a
/// minute at most. Tells it of removals and replacements that are refused, of one a minute at most.
final class FullnessLog: Sendable {
    private struct State {
        /// The largest addition that was refused since there was room for such a one.
        var need: PageNeed?
        var isTold = false
        var pause = LinePause(seconds: Limits.fullnessSeconds)
        var removalPause = LinePause(seconds: Limits.fullnessSeconds)
    }

    private let log: Log
    private let clock: MonotonicClock
    private let state = Lock(State())

    init(_ log: Log, clock: MonotonicClock = .system) {
        self.log = log
        self.clock = clock
    }

    /// The need of an addition that was refused; `nil` unless additions are refused.
    var need: PageNeed? { state.withLock { $0.need } }

    func refused(_ lack: Lack) {
        let isTold = state.withLock { state in
            if lack.need.sum >= state.need?.sum ?? 0 { state.need = lack.need }
            guard !state.isTold, state.pause.ends(at: clock.milliseconds) else { return false }
            state.isTold = true
            return true
        }
        if isTold { log(.warning, "\(lack.what), additions are refused: \(lack.remedy)") }
    }

    /// A removal or a replacement was refused. Whoever should lose access keeps it.
    func refusedRemoval(_ error: ServiceError) {
        let isTold = state.withLock { $0.removalPause.ends(at: clock.milliseconds) }
        if isTold { log(.critical, "a removal or a replacement was refused: \(error.reason)") }
    }

    func hasRoomAgain() {
        let wasTold = state.withLock { state in
            defer { (state.need, state.isTold) = (nil, false) }
            return state.isTold
        }
        if wasTold { log(.info, "additions find room again") }
    }
}

extension PageNeed {
    fileprivate var sum: Int { copied + fresh + run }
}
