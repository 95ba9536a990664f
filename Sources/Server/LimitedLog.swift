import Core

/// Passes a limited number of lines a second on to a log, so that an overloaded service does not fill the disk with
/// lines about it. The first line of a later second says how many were left out.
final class LimitedLog: Sendable {
    private struct State {
        var second: UInt64 = 0
        var written = 0
        var leftOut = 0
    }

    private let linesPerSecond: Int
    private let clock: MonotonicClock
    private let log: @Sendable (String) -> Void
    private let state = Lock(State())

    init(linesPerSecond: Int, clock: MonotonicClock, log: @escaping @Sendable (String) -> Void) {
        precondition(linesPerSecond > 0)
        self.linesPerSecond = linesPerSecond
        self.clock = clock
        self.log = log
    }

    func write(_ line: String) {
        let second = clock.milliseconds / 1000
        let leftOut = state.withLock { state -> Int? in
            if state.second != second {
                state.second = second
                state.written = 0
            }
            guard state.written < linesPerSecond else {
                state.leftOut += 1
                return nil
            }
            state.written += 1
            defer { state.leftOut = 0 }
            return state.leftOut
        }
        guard let leftOut else { return }
        log(leftOut == 0 ? line : "\(line) (\(leftOut) lines like this were left out before it)")
    }
}
