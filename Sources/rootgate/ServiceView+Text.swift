import Core
import Foundation
import LoadHarness
import Server

extension ServiceView {
    /// The view as lines of text, without characters that steer a terminal. Lists are wrapped at `columns`.
    func lines(_ server: String, columns: Int) -> [String] {
        var lines = ["\(server), up \(Self.time(Double(sample["uptime-milliseconds"]) / 1000)), \(baseText)"]
        lines += alarms.map { "ALARM: \($0)" }
        for (title, items) in sections {
            lines += Self.wrapped(title, items, columns: columns)
        }
        return (lines + verdictLines).map(\.escapingControls)
    }

    private var baseText: String {
        switch base {
        case .lastSample: "rates of the last \(String(format: "%.1f", seconds)) s"
        case .start: "rates since its start"
        case .restart: "rates since its start: it was started again"
        }
    }

    private var sections: [(title: String, items: [String])] {
        [
            (
                "rates",
                ["proofs \(Self.rate(proofRate))"]
                    + [
                        ("requests", "requests"), ("mutations", "mutations"), ("commits", "commits"),
                        ("challenges", "challenges-issued"),
                    ].map { "\($0.0) \(Self.rate(rates[$0.1]))" }
            ),
            (
                "waiting",
                numbers([
                    ("proofs", "proofs-waiting"), ("mutations", "mutations-waiting"),
                    ("requests in work", "requests-in-flight"), ("suspended queries", "requests-following"),
                ])
            ),
            ("refused", refusals),
            (
                "connections",
                numbers([("open", "connections")]) + ["new \(Self.rate(rates["connections-accepted"]))"]
            ),
            (
                "memory",
                bytes([
                    ("process", "resident-bytes"), ("requests", "request-memory-bytes"),
                    ("spent challenges", "replay-memory-bytes"), ("known keys", "known-key-bytes"),
                ])
            ),
            (
                "known keys",
                numbers([("keys", "known-keys")]) + ["proofs by them \(Self.rate(rates["known-key-hits"]))"]
            ),
            (
                "storage",
                numbers([("collaborations", "collaborations"), ("root hashes", "roots")])
                    + bytes([("file", "storage-bytes"), ("used", "storage-used-bytes"), ("log", "log-bytes")])
                    + numbers([("sequence", "sequence")]) + (sample["storage-checked"] == 0 ? ["not checked yet"] : [])
            ),
        ]
    }

    /// Figures that the service tells, each with its name for people.
    private func numbers(_ names: [(title: String, figure: String)]) -> [String] {
        names.compactMap { name in sample.figures[name.figure].map { "\(name.title) \(Self.grouped($0))" } }
    }

    private func bytes(_ names: [(title: String, figure: String)]) -> [String] {
        names.compactMap { name in sample.figures[name.figure].map { "\(name.title) \(Self.size($0))" } }
    }

    /// What was refused for lack of room and because of limits: what the service has never refused is left out.
    private var refusals: [String] {
        let names = ["requests-busy", "keys-slowed"] + sample.figures.keys.filter { $0.hasPrefix("limited-") }.sorted()
        let found = names.filter { sample[$0] > 0 }.map { name in
            "\(name) \(Self.rate(rates[name])) (\(Self.grouped(sample[name])))"
        }
        return found.isEmpty ? ["nothing since its start"] : found
    }

    private var verdictLines: [String] {
        let given = sample.verdicts.filter { $0.count > 0 }
        guard !given.isEmpty else { return ["no verdicts since its start"] }
        func row(_ name: String, _ rate: String, _ share: String, _ total: String) -> String {
            name.padding(toLength: max(24, name.count), withPad: " ", startingAt: 0)
                + [(rate, 14), (share, 9), (total, 18)].map { text, width in
                    String(repeating: " ", count: max(1, width - text.count)) + text
                }.joined()
        }
        return [row("verdict", "rate", "share", "since its start")]
            + given.map { name, count in
                row(
                    name, Self.rate(rates[ServiceSample.verdictPrefix + name]),
                    shares[name].map { String(format: "%.1f %%", $0 * 100) } ?? "-", Self.grouped(count))
            }
    }

    // MARK: Words and numbers

    /// A title and its items, on as many lines as they need.
    private static func wrapped(_ title: String, _ items: [String], columns: Int) -> [String] {
        let indent = 13
        var lines: [String] = []
        var line = title.padding(toLength: indent, withPad: " ", startingAt: 0)
        var isFresh = true
        for item in items {
            if !isFresh, line.count + 2 + item.count > columns {
                lines.append(line)
                (line, isFresh) = (String(repeating: " ", count: indent), true)
            }
            line += (isFresh ? "" : ", ") + item
            isFresh = false
        }
        return lines + [line]
    }

    /// 42 s, 5:07 (minutes), 1:02:03 (hours).
    static func time(_ seconds: Double) -> String { ProgressMeter.text(of: .seconds(seconds)) }
}
