import Core

/// Shows the progress of long work: the part that runs now, the time elapsed and an estimate of the time left.
///
/// The meter does no input or output of its own. The program passes in the clock and the function that writes, and
/// calls `refresh` now and then. Nothing is written before `patience` has passed, so that short work stays silent.
///
/// Every method may be called from any thread.
package final class ProgressMeter: Sendable {
    /// Where the text goes to.
    package enum Style: Sendable {
        /// To a terminal with the given number of columns: one line that is rewritten.
        case terminal(columns: @Sendable () -> Int)
        /// To a file or a pipe: a line for each new part, and one after each `interval` without any.
        case lines(every: Duration)
        /// Nowhere.
        case quiet
    }

    private struct State {
        /// What runs now, and the step of it.
        var part = ""
        var step = ""
        /// The part's range in the whole work, from 0 to 1; nil when unknown.
        var share: ClosedRange<Double>?
        /// Where the first part of known share began: what was done then, and the time.
        var origin: (done: Double, time: Duration)?
        /// When the whole work is likely to end.
        var expectedEnd: Duration?
        var lastWrite: Duration?
        var isPartWritten = true
        /// Whether a terminal shows a line that has to be erased.
        var isShown = false
        var hasEnded = false
    }

    /// A terminal's line is rewritten at most once in this time while steps change.
    private static let shortestInterval = Duration.milliseconds(100)
    /// The share of the work that has to be done before the time left is estimated from it.
    private static let smallestShare = 0.01

    private let style: Style
    private let prefix: String
    private let patience: Duration
    private let now: @Sendable () -> Duration
    private let write: @Sendable (String) -> Void
    private let begin: Duration
    private let state = Lock(State())

    /// `now` is a clock that never goes back; each line begins with `prefix`.
    package init(
        _ style: Style, prefix: String = "", patience: Duration = .zero, now: @escaping @Sendable () -> Duration,
        write: @escaping @Sendable (String) -> Void
    ) {
        self.style = style
        self.prefix = prefix
        self.patience = patience
        self.now = now
        self.write = write
        begin = now()
    }

    /// A meter that writes nothing.
    package static let silent = ProgressMeter(.quiet, now: { .zero }, write: { _ in })

    /// The next part of the work begins. `share`: the part's range in the whole work, from 0 to 1; nil when unknown.
    /// The time left is estimated from it.
    package func begin(_ part: String, share: ClosedRange<Double>? = nil) {
        precondition(share.map { $0.lowerBound >= 0 && $0.upperBound <= 1 } ?? true, "a share is beyond the whole")
        change { state, time in
            (state.part, state.step, state.share) = (part, "", share)
            state.isPartWritten = false
            if let share { estimate(share.lowerBound, time, &state) }
        }
    }

    /// The part has come to `step`; `done` of the part is done, from 0 to 1, when that is known.
    package func show(_ step: String, done: Double? = nil) {
        change { state, time in
            state.step = step
            if let share = state.share, let done {
                estimate(share.lowerBound + (share.upperBound - share.lowerBound) * min(max(done, 0), 1), time, &state)
            }
        }
    }

    /// Writes the time anew when that is due. False when the work has ended and nothing will be due any more.
    @discardableResult
    package func refresh() -> Bool {
        change { _, _ in }
        return state.withLock { !$0.hasEnded }
    }

    /// Erases the line on a terminal while `body` writes something else there.
    package func aside<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
        try state.withLock { state throws(Failure) in
            erase(&state)
            try body()
        }
    }

    /// The work has ended. Erases the line on a terminal; nothing is written any more.
    package func end() {
        state.withLock { state in
            erase(&state)
            state.hasEnded = true
        }
    }

    // MARK: Writing

    private func change(_ body: (inout State, Duration) -> Void) {
        if case .quiet = style { return }
        state.withLock { state in
            guard !state.hasEnded else { return }
            let time = now()
            body(&state, time)
            guard !state.part.isEmpty, time - begin >= patience else { return }
            let silence = state.lastWrite.map { time - $0 }
            switch style {
            case .terminal(let columns):
                guard !state.isPartWritten || silence.map({ $0 >= ProgressMeter.shortestInterval }) ?? true else {
                    return
                }
                write("\r\u{1b}[K" + line(of: state, time, columns: max(1, columns() - 1)))
                state.isShown = true
            case .lines(let interval):
                guard !state.isPartWritten || silence.map({ $0 >= interval }) ?? true else { return }
                write(line(of: state, time, columns: .max) + "\n")
            case .quiet: return
            }
            state.lastWrite = time
            state.isPartWritten = true
        }
    }

    private func erase(_ state: inout State) {
        guard state.isShown else { return }
        write("\r\u{1b}[K")
        state.isShown = false
    }

    /// Expects the rest to be as quick as what was done since the first part of known share began.
    private func estimate(_ done: Double, _ time: Duration, _ state: inout State) {
        guard let origin = state.origin else {
            state.origin = (done, time)
            return
        }
        let share = done - origin.done
        guard share >= ProgressMeter.smallestShare else { return }
        state.expectedEnd = time + (time - origin.time) * ((1 - done) / share)
    }

    /// The present part and the times. The part's name is cut when the line would be longer than `columns`.
    private func line(of state: State, _ time: Duration, columns: Int) -> String {
        var times = "\(ProgressMeter.text(of: time - begin)) elapsed"
        if let end = state.expectedEnd, end - time >= .seconds(1) {
            times += ", about \(ProgressMeter.text(of: end - time + .milliseconds(500))) left"
        }
        times = " (\(times))"
        let what = prefix + state.part + (state.step.isEmpty ? "" : ", " + state.step)
        let room = max(0, columns - times.count)
        return String(((what.count > room ? what.prefix(max(0, room - 1)) + "…" : what[...]) + times).prefix(columns))
    }

    /// 42 s, 5:07 (minutes), 1:02:03 (hours).
    package static func text(of duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        func twoDigits(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3600: return "\(seconds / 60):\(twoDigits(seconds % 60))"
        default: return "\(seconds / 3600):\(twoDigits(seconds / 60 % 60)):\(twoDigits(seconds % 60))"
        }
    }
}
