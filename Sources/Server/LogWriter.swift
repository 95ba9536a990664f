package import Core
package import Foundation
import Synchronization

/// Writes the lines of a log for an operator, in one of three formats. Leaves out lines that matter less than a level,
/// and most of those that one place in the code repeats, so that an overloaded service does not fill the disk with
/// lines about it.
package final class LogWriter: Sendable {
    /// How a line looks.
    package enum Format: String, Sendable, CaseIterable {
        /// The time, the level and the text.
        case text
        /// One JSON object (RFC 8259) a line.
        case json
        /// The level as a number in angle brackets, and the text: see sd-daemon(3). The journal adds the time.
        case journal
    }

    /// A line in the format `json`.
    private struct Object: Encodable {
        let time: String
        let level: String
        let text: String
        /// The connection and the request that the line is about.
        let connection: UInt64?
        let request: UInt64?
        /// Lines of the same place in the code that were left out before this one.
        let leftOut: Int?
    }

    /// The lines that one place in the code may write.
    private struct Allowance {
        var bucket: TokenBucket
        var leftOut = 0
        /// The last line that was left out.
        var last: LogLine?
    }

    private struct State {
        var allowances: [LogLine.Place: Allowance] = [:]
        /// When lines that were left out were last looked for, in milliseconds.
        var looked: UInt64 = 0
    }

    private let format: Format
    private let clock: MonotonicClock
    private let date: @Sendable () -> Date
    private let write: @Sendable (String) -> Void
    private let threshold: Atomic<UInt8>
    private let state = Lock(State())

    /// `write` gets the lines without their ends. They have no control characters.
    package init(
        _ format: Format, level: LogLevel = .info, clock: MonotonicClock = .system,
        date: @escaping @Sendable () -> Date = { Date() }, write: @escaping @Sendable (String) -> Void
    ) {
        self.format = format
        self.clock = clock
        self.date = date
        self.write = write
        threshold = Atomic(level.rawValue)
    }

    /// Lines that matter less are left out. May be changed at any time.
    package var level: LogLevel {
        get { LogLevel(rawValue: threshold.load(ordering: .relaxed)) ?? .info }
        set { threshold.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// The log whose lines are written. `showsAddresses`: whether it names the addresses of clients in full.
    package func log(showsAddresses: Bool = false) -> Log {
        Log(showsAddresses: showsAddresses, threshold: { self.level }) { self.write($0) }
    }

    /// Writes how many lines were left out and not told yet. For the end, and now and then.
    package func tellLeftOut() {
        for (line, count) in state.withLock({ LogWriter.takeLeftOut(&$0) }) { tell(line, count) }
    }

    private func write(_ line: LogLine) {
        let now = clock.milliseconds
        let (leftOut, others) = state.withLock { state -> (Int?, [(LogLine, Int)]) in
            let leftOut = LogWriter.take(line, &state, now)
            guard now >= state.looked + 1000 else { return (leftOut, []) }
            state.looked = now
            return (leftOut, LogWriter.takeLeftOut(&state, quietAt: now))
        }
        for (line, count) in others { tell(line, count) }
        if let leftOut { emit(line, leftOut: leftOut) }
    }

    /// Takes a line of its place's allowance. Returns how many were left out before it; `nil`: this one is, too.
    private static func take(_ line: LogLine, _ state: inout State, _ now: UInt64) -> Int? {
        var allowance =
            state.allowances[line.place]
            ?? Allowance(
                bucket: TokenBucket(
                    tokensPerSecond: Limits.logLinesPerSecond, burst: Limits.logLinesAtOnce, at: now))
        defer { state.allowances[line.place] = allowance }
        guard allowance.bucket.take(1, at: now) == nil else {
            allowance.leftOut += 1
            allowance.last = line
            return nil
        }
        defer { (allowance.leftOut, allowance.last) = (0, nil) }
        return allowance.leftOut
    }

    /// The last line and the number of those that were left out, of each place; with `quietAt`: of each that may write
    /// again then.
    private static func takeLeftOut(_ state: inout State, quietAt now: UInt64? = nil) -> [(LogLine, Int)] {
        var found: [(LogLine, Int)] = []
        for (place, allowance) in state.allowances {
            guard let last = allowance.last, now.map({ allowance.bucket.wait(at: $0) == nil }) ?? true else { continue }
            found.append((last, allowance.leftOut))
            state.allowances[place]?.last = nil
            state.allowances[place]?.leftOut = 0
        }
        return found
    }

    /// Writes the last line that was left out of several.
    private func tell(_ line: LogLine, _ count: Int) { emit(line, leftOut: count - 1) }

    private func emit(_ line: LogLine, leftOut: Int) {
        var text = line.text
        if let request = line.request { text += " (connection \(request.connection), request \(request.number))" }
        if leftOut > 0 { text += " (\(leftOut) lines like this were left out before it)" }
        switch format {
        case .text:
            write("\(time) \(line.level.name.uppercased()): \(text)".escapingControls)
        case .journal:
            write("<\(line.level.rawValue)>\(text)".escapingControls)
        case .json:
            let object = Object(
                time: time, level: line.level.name, text: line.text, connection: line.request?.connection,
                request: line.request?.number, leftOut: leftOut == 0 ? nil : leftOut)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            // Text and whole numbers can always be encoded.
            guard let bytes = try? encoder.encode(object) else { return }
            write(String(decoding: bytes, as: UTF8.self).escapingControls)
        }
    }

    private var time: String {
        date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
