import Core
import Foundation

/// A terminal's second screen, on which text is drawn in place of the text before. The first screen comes back when
/// this ends: by `end`, by SIGINT, SIGTERM or SIGHUP, which end the process with exit code 0, and for as long as the
/// process is stopped by SIGTSTP.
final class TerminalScreen: Sendable {
    private struct State {
        var lines: [String] = []
        /// Whether the process is stopped, or is about to be.
        var isStopped = false
        var hasEnded = false

        var isShown: Bool { !isStopped && !hasEnded }
    }

    private let state = Lock(State())

    /// Whether standard output is a terminal that can do this.
    static var isPossible: Bool {
        isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"].map { $0 != "dumb" } ?? false
    }

    init() {
        let numbers = [SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH]
        CaughtSignals.begin(numbers, on: DispatchQueue(label: "rootgate screen")) { [self] in received($0) }
        state.withLock { _ in TerminalScreen.enter() }
    }

    /// How many columns and lines the terminal has.
    static var size: (columns: Int, lines: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Draws the lines in place of those before. What the terminal has no room for is cut.
    func draw(_ lines: [String]) {
        state.withLock { state in
            state.lines = lines
            if state.isShown { TerminalScreen.write(lines) }
        }
    }

    /// Shows the first screen again.
    func end() {
        state.withLock { state in
            if state.isShown { TerminalScreen.leave() }
            state.hasEnded = true
        }
    }

    private func received(_ number: CInt) {
        switch number {
        case SIGWINCH: draw(state.withLock { $0.lines })
        case SIGTSTP:
            state.withLock { state in
                guard state.isShown else { return }
                TerminalScreen.leave()
                state.isStopped = true
            }
            kill(getpid(), SIGSTOP)
        case SIGCONT:
            state.withLock { state in
                guard state.isStopped, !state.hasEnded else { return }
                state.isStopped = false
                TerminalScreen.enter()
                TerminalScreen.write(state.lines)
            }
        default:
            end()
            exit(ExitCode.success.rawValue)
        }
    }

    // MARK: What a terminal is told

    private static func enter() { printNow("\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J", terminator: "") }
    private static func leave() { printNow("\u{1b}[?25h\u{1b}[?1049l", terminator: "") }

    private static func write(_ lines: [String]) {
        printNow(
            "\u{1b}[H" + fitted(lines, size).joined(separator: "\u{1b}[K\r\n") + "\u{1b}[K\u{1b}[J", terminator: "")
    }

    /// The lines that there is room for, cut where they are too long. The last one tells how many are missing.
    static func fitted(_ lines: [String], _ size: (columns: Int, lines: Int)) -> [String] {
        let rows = max(1, size.lines)
        var shown = Array(lines.prefix(rows))
        if lines.count > rows { shown[rows - 1] = "… \(lines.count - rows + 1) more lines" }
        return shown.map { $0.count > size.columns ? $0.prefix(max(0, size.columns - 1)) + "…" : $0 }
    }
}
