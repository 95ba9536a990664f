import Foundation

/// The few figures in README.md: a region between two marks that is written from the results of each kind of machine
/// and from nothing else.
enum ReadmeFigures {
    static let beginMark = "<!-- figures: written by rootgate-bench --report -->"
    static let endMark = "<!-- end of figures -->"

    /// The benchmarks whose figures are shown: how quick one proof, one signature, one look-up and one grant is.
    static let names = [
        "signature.new.b256", "membership.10m.b256", "proof.new.loopback", "proof.known.loopback", "latency.lone",
        "grants.check",
    ]

    /// The region with its marks.
    ///
    /// Throws when there are no results, or when one of the figures is missing.
    static func region(from machines: [MachineResults]) throws -> String {
        guard !machines.isEmpty else { throw ReportError("there are no results: run rootgate-bench --report") }
        let rows = try names.map { name in
            let cells = try machines.map { try cell(name, $0) }
            return [machines.lazy.compactMap { $0.document.row(name)?["what"] }.first ?? name] + cells
        }
        let header =
            ["what"]
            + machines.map { machine in
                let facts = ["processor", "cores", "date"].map { machine.document.fact($0) ?? "unknown" }
                return "[\(facts[0])](\(machine.path)), \(facts[1]) cores, \(facts[2]): \(machine.kind.description)"
            }
        return """
            \(beginMark)
            \(ResultsDocument.markdown([header] + rows))
            \(endMark)
            """
    }

    /// A figure with its unit, and its ratio to its baseline.
    private static func cell(_ name: String, _ machine: MachineResults) throws -> String {
        guard let row = machine.document.row(name), let value = row["value"], let unit = row["unit"] else {
            throw ReportError("\(machine.path) has no figure of \(name), so the README's figures can't be written")
        }
        // "ECDSA_do_verify, all cores: 43,300"
        let baseline = (row["baseline"] ?? "").components(separatedBy: ": ").first ?? ""
        let ratio = row["ratio"] ?? ""
        return "\(value) \(unit)" + (ratio.isEmpty ? "" : ", \(ratio) x \(baseline)")
    }

    /// The region in a README, with its marks.
    ///
    /// Throws when the marks are not there, each once and in order.
    static func region(in readme: String) throws -> String {
        String(readme[try range(in: readme)])
    }

    /// A README with its region replaced.
    ///
    /// Throws when the marks are not there, each once and in order.
    static func replace(in readme: String, with region: String) throws -> String {
        readme.replacingCharacters(in: try range(in: readme), with: region)
    }

    private static func range(in readme: String) throws -> Range<String.Index> {
        let (begins, ends) = (readme.ranges(of: beginMark), readme.ranges(of: endMark))
        guard begins.count == 1, ends.count == 1, begins[0].upperBound <= ends[0].lowerBound else {
            throw ReportError("README.md does not have the lines \(beginMark) and \(endMark), each once and in order")
        }
        return begins[0].lowerBound..<ends[0].upperBound
    }
}

/// A report can't be written.
struct ReportError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
