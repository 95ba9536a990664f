import Core
import Foundation
import TestSupport
import Testing

@testable import Server

@Suite("The log") struct LogWriterTests {
    private let time = Shared<UInt64>(5000)
    private let lines = Shared<[String]>([])

    private func writer(_ format: LogWriter.Format, level: LogLevel = .info) -> LogWriter {
        LogWriter(
            format, level: level, clock: MonotonicClock { [time] in time.value },
            date: { Date(timeIntervalSince1970: 1_800_000_000.25) },
            write: { [lines] line in lines.with { $0.append(line) } })
    }

    /// Writes a line from the same place each time.
    private func write(_ number: Int, to log: Log) { log(.info, "line \(number)") }

    private let request = LogLine.Request(connection: 3, number: 42)

    @Test("A line of text has its time, its level and its request")
    func text() {
        let log = writer(.text).log()
        log(.critical, "the storage has failed")
        log(.warning, "slow", request: request)
        #expect(
            lines.value == [
                "2027-01-15T08:00:00.250Z CRITICAL: the storage has failed",
                "2027-01-15T08:00:00.250Z WARNING: slow (connection 3, request 42)",
            ])
    }

    @Test("A line for the journal has the severity of syslog and no time")
    func journal() {
        let log = writer(.journal, level: .debug).log()
        for level in LogLevel.allCases { log(level, "text") }
        #expect(lines.value == ["<2>text", "<3>text", "<4>text", "<6>text", "<7>text"])
    }

    @Test("A line of JSON is one object, whatever is in its text")
    func json() throws {
        let log = writer(.json).log()
        let text = "quote \" line\nfeed \u{1B}[31m \u{202E} \u{85} end"
        log(.error, text, request: request)
        let line = try #require(lines.value.first)
        #expect(!line.unicodeScalars.contains { $0.isControl }, "\(line)")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(Set(object.keys) == ["time", "level", "text", "connection", "request"])
        #expect(object["text"] as? String == text)
        #expect(object["level"] as? String == "error" && object["request"] as? Int == 42)
        #expect(object["time"] as? String == "2027-01-15T08:00:00.250Z")
    }

    @Test(
        "Text and journal have one line for each line, whatever is in its text",
        arguments: [LogWriter.Format.text, .journal])
    func controls(format: LogWriter.Format) {
        writer(format).log()(.info, "a\nb\r\n\u{1B}[2J<0>c")
        #expect(lines.value.count == 1 && !(lines.value.first?.unicodeScalars.contains { $0.isControl } ?? true))
    }

    @Test("Lines below the level are left out, and their texts are not made", arguments: LogLevel.allCases)
    func levels(threshold: LogLevel) {
        let made = Shared(0)
        func text() -> String {
            made.increment()
            return "text"
        }
        let writer = writer(.text, level: .critical)
        let log = writer.log()
        writer.level = threshold
        #expect(writer.level == threshold)
        for level in LogLevel.allCases { log(level, text()) }
        let expected = LogLevel.allCases.count { $0.rawValue <= threshold.rawValue }
        #expect(lines.value.count == expected && made.value == expected)
    }

    @Test("One line more than a place may write is left out, and a later line says so")
    func repetition() {
        let log = writer(.text).log()
        for number in 0..<Limits.logLinesAtOnce + 3 { write(number, to: log) }
        #expect(lines.value.count == Limits.logLinesAtOnce)
        // Another place is not held up.
        log(.info, "something else")
        #expect(lines.value.last?.hasSuffix(" INFO: something else") == true)
        time.with { $0 += 499 }
        write(100, to: log)
        #expect(lines.value.count == Limits.logLinesAtOnce + 1)
        time.with { $0 += 1 }
        write(101, to: log)
        #expect(lines.value.last?.hasSuffix(" INFO: line 101 (4 lines like this were left out before it)") == true)
        time.with { $0 += 500 }
        write(102, to: log)
        #expect(lines.value.last?.hasSuffix(" INFO: line 102") == true)
    }

    @Test("What was left out is told when its place has become quiet, and at the end")
    func quiet() {
        let writer = writer(.text)
        let log = writer.log()
        for number in 1...Limits.logLinesAtOnce + 3 { write(number, to: log) }
        time.with { $0 += 2000 }
        log(.info, "something else")
        let last = Limits.logLinesAtOnce + 3
        #expect(
            lines.value.suffix(2).map { String($0.dropFirst(31)) } == [
                "line \(last) (2 lines like this were left out before it)", "something else",
            ], "\(lines.value.suffix(2))")
        writer.tellLeftOut()
        #expect(lines.value.count == Limits.logLinesAtOnce + 2)
        for number in 1...Limits.logLinesAtOnce { write(number, to: log) }
        let count = lines.value.count
        writer.tellLeftOut()
        #expect(lines.value.count == count + 1)
    }

    @Test("No line is lost or counted twice when threads write at the same time")
    func threads() {
        let writer = writer(.text)
        let log = writer.log()
        DispatchQueue.concurrentPerform(iterations: 400) { write($0, to: log) }
        writer.tellLeftOut()
        let leftOut = lines.value.compactMap { line -> Int? in
            guard let end = line.range(of: " lines like this"), let start = line.lastIndex(of: "(") else { return nil }
            return Int(line[line.index(after: start)..<end.lowerBound])
        }
        #expect(lines.value.count + leftOut.reduce(0, +) == 400)
    }
}
