/// How much a line of the log matters. The numbers are the severities of syslog (RFC 5424, section 6.2.1).
package enum LogLevel: UInt8, Sendable, CaseIterable, Comparable {
    /// Somebody has to act now: data is lost or in danger, or a kernel was wrong.
    case critical = 2
    /// Something that was asked for is not done.
    case error = 3
    /// Something does not work for now, or may not work later.
    case warning = 4
    /// What the service does, and what changes.
    case info = 6
    /// What helps to find a fault: requests that get an error, connections that are closed.
    case debug = 7

    /// The level with this name.
    package init?(_ name: String) {
        guard let level = LogLevel.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    package var name: String { "\(self)" }

    /// A level that matters less is less.
    package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue > right.rawValue }
}
