import Foundation

extension ProgressMeter {
    /// How often a terminal's line is rewritten, and how often the meter checks whether another output needs a line.
    private static let refreshSeconds = 0.5
    /// Between two lines when stderr is no terminal.
    private static let lineInterval = Duration.seconds(10)

    /// A meter of the program `name` that writes to stderr: one line that rewrites itself when that is a terminal, a
    /// line for each part and one every ten seconds otherwise, nothing when `isQuiet`. A thread refreshes it until its
    /// end.
    ///
    /// `patience` is how many seconds the work runs before anything is shown.
    package static func onStandardError(
        _ name: String, isQuiet: Bool, patience: (terminal: Int, elsewhere: Int) = (0, 0)
    ) -> ProgressMeter {
        guard !isQuiet else { return .silent }
        let isTerminal =
            isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"].map { $0 != "dumb" } ?? false
        let begin = ContinuousClock.now
        let meter = ProgressMeter(
            isTerminal ? .terminal(columns: standardErrorColumns) : .lines(every: lineInterval),
            prefix: "\(name): ", patience: .seconds(isTerminal ? patience.terminal : patience.elsewhere),
            now: { ContinuousClock.now - begin }
        ) { text in
            try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
        }
        let refresher = Thread { [weak meter] in
            while meter?.refresh() ?? false { Thread.sleep(forTimeInterval: refreshSeconds) }
        }
        refresher.name = "progress"
        refresher.start()
        return meter
    }

    @Sendable private static func standardErrorColumns() -> Int {
        var size = winsize()
        return ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }
}
