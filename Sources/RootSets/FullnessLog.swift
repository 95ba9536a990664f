import Core

/// Tells a log when additions begin to be refused for lack of room, and when there is room again: a pair of lines a
/// minute at most. Tells it of removals and replacements that are refused, of one a minute at most.
final class FullnessLog: Sendable {
    private enum Told {
        case large
        case general
    }

    private struct State {
        /// The largest addition that was refused since there was room for such a one.
        var need: PageNeed?
        /// The smallest one; and whether a usual one has no room, either.
        var least: PageNeed?
        var isFull = false
        /// When it was looked last whether there is room, in milliseconds of the clock.
        var lookedAt: UInt64?
        /// What the log was told last: that large additions are refused, or that all are; `nil`: nothing.
        var told: Told?
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

    /// Whether additions were refused for lack of room, and a usual one would be now, as far as is known.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// The need of the smallest addition that was refused; `nil`: none was.
    var least: PageNeed? { state.withLock { $0.least } }

    /// Whether it is to be looked now whether there is room: after the start, each minute, and each second while there
    /// is none.
    func takeLook() -> Bool {
        let now = clock.milliseconds
        return state.withLock { state in
            let pause = state.isFull ? Limits.fullnessLookMilliseconds : Limits.fullnessSeconds * 1000
            let isDue = state.lookedAt.map { now >= $0 + pause } ?? true
            if isDue { state.lookedAt = now }
            return isDue
        }
    }

    /// Somebody has looked.
    func looked(hasRoom: Bool) {
        let wasFull = state.withLock { state in
            defer { state.isFull = !hasRoom }
            return state.isFull
        }
        if hasRoom, wasFull { hasRoomAgain() }
    }

    func refused(_ lack: Lack) {
        let isTold = state.withLock { state in
            if lack.need.sum >= state.need?.sum ?? 0 { state.need = lack.need }
            if lack.need.sum <= state.least?.sum ?? .max { state.least = lack.need }
            if lack.isGeneral { state.isFull = true }
            let what = lack.isGeneral ? Told.general : .large
            guard state.told != .general, state.told != what, state.pause.ends(at: clock.milliseconds) else {
                return false
            }
            state.told = what
            return true
        }
        let which = lack.isGeneral ? "" : "large "
        if isTold { log(.warning, "\(lack.what), \(which)additions are refused: \(lack.remedy)") }
    }

    /// A removal or a replacement was refused. Whoever should lose access keeps it.
    func refusedRemoval(_ error: ServiceError) {
        let isTold = state.withLock { $0.removalPause.ends(at: clock.milliseconds) }
        if isTold { log(.critical, "a removal or a replacement was refused: \(error.reason)") }
    }

    func hasRoomAgain() {
        let wasTold = state.withLock { state in
            defer { (state.need, state.least, state.isFull, state.told) = (nil, nil, false, nil) }
            return state.told != nil
        }
        if wasTold { log(.info, "additions find room again") }
    }
}

extension PageNeed {
    var sum: Int { copied + fresh + run }
}
