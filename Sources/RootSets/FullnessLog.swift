import Core
import Dispatch

/// Tells a log when additions begin to be refused for lack of room, and when there is room again: a pair of lines a
/// minute at most. Tells it of removals and replacements that are refused, of one a minute at most.
final class FullnessLog: Sendable {
    private struct State {
        /// The largest addition that was refused since there was room for such a one.
        var need: PageNeed?
        var isTold = false
        var toldAt: UInt64?
        var toldOfRemovalAt: UInt64?
    }

    private let log: Log
    private let now: @Sendable () -> UInt64
    private let state = Lock(State())

    /// `now`: nanoseconds of a monotonic clock.
    init(
        _ log: Log,
        now: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        self.log = log
        self.now = now
    }

    /// The need of an addition that was refused; `nil` unless additions are refused.
    var need: PageNeed? { state.withLock { $0.need } }

    func refused(_ lack: Lack) {
        let isTold = state.withLock { state in
            if lack.need.sum >= state.need?.sum ?? 0 { state.need = lack.need }
            let time = now()
            let isDue = state.toldAt.map { time >= $0 + Limits.fullnessSeconds * 1_000_000_000 } ?? true
            guard !state.isTold, isDue else { return false }
            (state.isTold, state.toldAt) = (true, time)
            return true
        }
        if isTold { log(.warning, "\(lack.what), additions are refused: \(lack.remedy)") }
    }

    /// A removal or a replacement was refused. Whoever should lose access keeps it.
    func refusedRemoval(_ error: ServiceError) {
        let isTold = state.withLock { state in
            let time = now()
            let isDue = state.toldOfRemovalAt.map { time >= $0 + Limits.fullnessSeconds * 1_000_000_000 } ?? true
            if isDue { state.toldOfRemovalAt = time }
            return isDue
        }
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
