/// Where lines for whoever operates the service go. Calls may come from any thread.
package struct Log: Sendable {
    private let write: @Sendable (LogLine) -> Void
    private let threshold: @Sendable () -> LogLevel
    /// Whether lines may name the addresses of clients in full, and not only their networks.
    package let showsAddresses: Bool

    /// A log that discards its lines.
    package static let none = Log(threshold: { .critical }) { _ in }

    /// `write` gets the lines. `threshold`: lines that matter less than the level that it returns are not made.
    package init(
        showsAddresses: Bool = false, threshold: @escaping @Sendable () -> LogLevel = { .debug },
        _ write: @escaping @Sendable (LogLine) -> Void
    ) {
        self.threshold = threshold
        self.showsAddresses = showsAddresses
        self.write = write
    }

    /// Writes a line, unless lines of this level are not wanted; then `text` is not made.
    package func callAsFunction(
        _ level: LogLevel, _ text: @autoclosure () -> String, request: LogLine.Request? = nil,
        file: StaticString = #fileID, line: UInt = #line
    ) {
        guard level >= threshold() else { return }
        write(LogLine(level, text(), request: request, at: LogLine.Place(file, line)))
    }
}
