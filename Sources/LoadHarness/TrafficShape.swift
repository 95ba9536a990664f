import Core
import Foundation

/// What a service's clients did in each second or so: how many requests of which kind, with how many proofs. Nothing
/// in it tells who or what they were about.
///
/// As text it is a line that names the format, and a JSON object for each period.
package struct TrafficShape: Sendable, Equatable {
    /// What was done in some time.
    package struct Period: Codable, Sendable, Equatable {
        package var seconds: Double
        /// Requests of each kind, by its name; a kind without any may be missing.
        package var requests: [String: Double]
        /// Proofs of all requests, and those of them that were refused.
        package var proofs: Double
        package var refused: Double
        /// Requests that are of no kind of a load.
        package var others: Double

        package init(
            seconds: Double, requests: [String: Double], proofs: Double = 0, refused: Double = 0, others: Double = 0
        ) {
            (self.seconds, self.requests, self.proofs) = (seconds, requests, proofs)
            (self.refused, self.others) = (refused, others)
        }

        /// Requests of a kind.
        package func count(_ kind: LoadKind) -> Double { requests[kind.rawValue] ?? 0 }

        /// Proofs of a request on average, at least one, and at most as many as a request takes.
        package var batch: Double {
            let requests = LoadKind.allCases.filter(\.hasProofs).reduce(0) { $0 + count($1) }
            return requests > 0 ? min(max(1, proofs / requests), Double(Limits.proofsPerRequestMax)) : 1
        }

        /// The part of the proofs that were refused.
        package var invalidPart: Double { proofs > 0 ? refused / proofs : 0 }

        /// Whether all numbers are such as a recording can have.
        fileprivate var isSound: Bool {
            let numbers = requests.values + [proofs, refused, others]
            return seconds > 0 && seconds <= TrafficShape.periodSecondsMax && refused <= proofs
                && numbers.allSatisfy { $0 >= 0 && $0 <= TrafficShape.numberMax }
                && requests.keys.allSatisfy { LoadKind(rawValue: $0) != nil }
        }
    }

    private static let periodSecondsMax = 3600.0
    /// Of requests or proofs in a period.
    private static let numberMax = 1e10

    private struct Head: Codable {
        var format = "rootgate-traffic"
        var version = 1
    }

    package var periods: [Period]

    package init(_ periods: [Period]) {
        self.periods = periods
    }

    /// The first line of the text.
    ///
    /// Throws what the encoder throws.
    package static func head() throws -> String { try line(Head()) }

    /// A period's line.
    ///
    /// Throws what the encoder throws.
    package static func line(of period: Period) throws -> String { try line(period) }

    private static func line(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(value), as: UTF8.self) + "\n"
    }

    /// What is wrong with a text that should be a recording.
    package struct Malformed: Error, CustomStringConvertible {
        let line: Int
        let reason: String

        package var description: String { "line \(line) \(reason)" }
    }

    /// Reads a recording. A last line without an end is left out: the recording was cut short.
    ///
    /// Throws `Malformed`.
    package init(text: String) throws(Malformed) {
        // A line may end with "\r\n", which is one character.
        var lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
        lines.removeLast()
        let decoder = JSONDecoder()
        guard let first = lines.first, let head = try? decoder.decode(Head.self, from: Data(first.utf8)),
            head.format == Head().format
        else { throw Malformed(line: 1, reason: "is not that of a recording") }
        guard head.version == Head().version else {
            throw Malformed(line: 1, reason: "names version \(head.version), and this program knows \(Head().version)")
        }
        var periods: [Period] = []
        for (number, line) in lines.enumerated().dropFirst() {
            guard let period = try? decoder.decode(Period.self, from: Data(line.utf8)) else {
                throw Malformed(line: number + 1, reason: "is no period")
            }
            guard period.isSound else {
                throw Malformed(line: number + 1, reason: "has a number or a kind that no recording has")
            }
            periods.append(period)
        }
        self.init(periods)
    }

    // MARK: From statistics

    /// What a service did between two looks at its statistics. `nil` when it was restarted between them, or when no
    /// time has passed.
    package static func period(
        from before: [String: UInt64], to after: [String: UInt64]
    ) -> Period? {
        let uptimes = (before[uptime] ?? 0, after[uptime] ?? 0)
        guard uptimes.1 > uptimes.0, after.allSatisfy({ !isCounter($0.key) || $0.value >= before[$0.key] ?? 0 }) else {
            return nil
        }
        func growth(_ name: String) -> Double { Double((after[name] ?? 0) - (before[name] ?? 0)) }
        var period = Period(seconds: Double(uptimes.1 - uptimes.0) / 1000, requests: [:])
        for name in after.keys where name.hasPrefix(operationPrefix) {
            let operation = String(name.dropFirst(operationPrefix.count))
            if let kind = kinds[operation] {
                period.requests[kind.rawValue, default: 0] += growth(name)
            } else if !aside.contains(operation) {
                period.others += growth(name)
            }
        }
        for name in after.keys where name.hasPrefix(verdictPrefix) {
            period.proofs += growth(name)
            if !accepting.contains(String(name.dropFirst(verdictPrefix.count))) { period.refused += growth(name) }
        }
        return period
    }

    private static let uptime = "uptime-milliseconds"
    private static let operationPrefix = "operation-"
    private static let verdictPrefix = "verdict-"
    private static let accepting: Set<String> = ["granted", "included"]
    private static let kinds: [String: LoadKind] = [
        "verify": .verify, "verify-inclusion": .inclusion, "open": .open, "check-grants": .check,
        "add-roots": .mutate, "remove-roots": .mutate, "create-collaboration": .mutate, "drop-collaboration": .mutate,
    ]
    /// What a load does anyhow, and what the recording itself does.
    private static let aside: Set<String> = ["hello", "ping", "issue-challenges", "statistics"]

    private static func isCounter(_ name: String) -> Bool {
        name.hasPrefix(operationPrefix) || name.hasPrefix(verdictPrefix)
    }
}
