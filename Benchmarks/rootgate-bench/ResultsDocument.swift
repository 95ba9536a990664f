import Foundation

/// RESULTS.md: what the machine is, the table of the benchmarks, and a section for each sweep.
///
/// It is read as well as written: a report of some benchmarks keeps what is there of the others, and the figures in
/// the README come from here.
struct ResultsDocument {
    /// Facts of the machine, in pairs of name and value.
    var facts: [(name: String, value: String)]
    /// The benchmarks' rows, by their columns' names.
    private(set) var rows: [[String: String]] = []
    /// The sweeps' sections, by their titles.
    private(set) var sections: [(title: String, body: String)] = []

    static let columns = ["name", "what", "conditions", "value", "unit", "baseline", "ratio", "spread", "rounds"]
    private static let benchmarksTitle = "Benchmarks"
    private static let comparisonTitle = "How figures compare"

    init(facts: [(name: String, value: String)]) {
        self.facts = facts
    }

    /// Reads a document that `text` wrote, or an earlier form of it with fewer columns.
    init(parsing text: String) {
        let parts = text.components(separatedBy: "\n## ")
        facts = ResultsDocument.table(in: parts.first ?? "").compactMap { cells in
            cells.count == 2 && !cells[0].isEmpty ? (cells[0], cells[1]) : nil
        }
        for part in parts.dropFirst() {
            let title = String(part.prefix { $0 != "\n" })
            let body = part.dropFirst(title.count).trimmed
            switch title {
            case ResultsDocument.benchmarksTitle:
                let table = ResultsDocument.table(in: body)
                guard let header = table.first else { continue }
                rows = table.dropFirst().map { cells in
                    Dictionary(zip(header, cells)) { first, _ in first }
                }
            case ResultsDocument.comparisonTitle: continue
            default: sections.append((title, body))
            }
        }
    }

    func fact(_ name: String) -> String? { facts.first { $0.name == name }?.value }

    /// The row of a benchmark.
    func row(_ name: String) -> [String: String]? { rows.first { $0["name"] == "`\(name)`" } }

    /// Replaces the row of a benchmark, or adds it.
    mutating func set(_ result: Measurement, about: String) {
        rows.removeAll { $0["name"] == "`\(result.name)`" }
        rows.append([
            "name": "`\(result.name)`", "what": about, "conditions": result.conditions,
            "value": rounded(result.value), "unit": result.unit,
            "baseline": result.baseline.map { "\($0.name): \(rounded($0.value))" } ?? "",
            "ratio": result.ratio.map(twoDecimals) ?? "",
            "spread": "\(rounded(result.spread.lowerBound)) to \(rounded(result.spread.upperBound))",
            "rounds": "\(result.rounds)",
        ])
    }

    /// Replaces a sweep's section, or adds it.
    mutating func setSection(_ title: String, _ body: String) {
        sections.removeAll { $0.title == title }
        sections.append((title, body))
    }

    /// Orders rows and sections as they stand in these lists; what is in neither comes last.
    mutating func order(benchmarks: [String], sections titles: [String]) {
        func place(_ name: String, _ names: [String]) -> Int { names.firstIndex(of: name) ?? names.count }
        rows.sort { place($0["name"] ?? "", benchmarks) < place($1["name"] ?? "", benchmarks) }
        sections.sort { place($0.title, titles) < place($1.title, titles) }
    }

    /// The document in Markdown. `warning` follows the introduction.
    func text(warning: String = "") -> String {
        var parts = [
            """
            # Results

            Written by `swift run -c release rootgate-bench --report` on one machine; run it on yours. Load generator \
            and service share its cores. Absolute figures change with the machine's clock and with what else runs on \
            it: trust ratios and shapes. Points are medians of several rounds, with bars from the lowest to the \
            highest.\(warning)
            """,
            ResultsDocument.markdown([["", ""]] + facts.map { [$0.name, $0.value] }),
        ]
        if !rows.isEmpty {
            let cells = rows.map { row in ResultsDocument.columns.map { row[$0] ?? "" } }
            parts += [
                "## \(ResultsDocument.benchmarksTitle)",
                """
                The value is the median of the rounds, the spread their lowest and highest. A ratio is value over \
                baseline, measured in alternation, and the median of the rounds' own ratios.
                """,
                ResultsDocument.markdown([ResultsDocument.columns] + cells),
            ]
        }
        if !sections.isEmpty {
            parts += ["## \(ResultsDocument.comparisonTitle)", ResultsDocument.comparison]
        }
        parts += sections.flatMap { ["## \($0.title)", $0.body] }
        return parts.joined(separator: "\n\n") + "\n"
    }

    private static let comparison = """
        Some loads are measured in several sections: new keys in batches of 256 over 4 connections are \
        `proof.new.loopback`, a point of the sweep over batch sizes, the point of 0 % of the sweep over known keys, \
        and the point of all threads of the sweep over threads.

        One function measures all of them. It restarts the \
        service over 1 M roots, warms up its threads, kernels, storage and tables of known keys, waits until the new \
        connections are accepted, and sends signed proofs for the time that the conditions name. The first round does \
        not count. Files of earlier sections are on the disk before a section begins.

        The figures differ all the same, because the sections are measured minutes apart, and a machine's clock and \
        what else runs on it change meanwhile. Each sweep therefore tells what the reference load, \
        `proof.new.loopback`, reached right before it and right after it. Compare figures of two sections by their \
        ratios to that.
        """

    // MARK: Markdown

    /// A table whose first row is its header.
    static func markdown(_ rows: [[String]]) -> String {
        guard let header = rows.first else { return "" }
        return ([header, header.map { _ in "---" }] + rows.dropFirst())
            .map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    /// The cells of the first table in `text`, its header first.
    private static func table(in text: String) -> [[String]] {
        text.split(separator: "\n").filter { $0.hasPrefix("|") && !$0.hasPrefix("| ---") }.map { line in
            line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map(\.trimmed)
        }
    }
}

extension StringProtocol {
    /// Without white space at both ends.
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
