import Foundation

/// The few figures in README.md: a region between two marks that is written from RESULTS.md and from nothing else.
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
    /// Throws when one of the figures is not in `results`.
    static func region(from results: ResultsDocument) throws -> String {
        let rows = try names.map { name in
            guard let row = results.row(name), let what = row["what"], let value = row["value"], let unit = row["unit"]
            else { throw ReportError("there is no figure of \(name), so the README's figures can't be written") }
            // "ECDSA_do_verify, all cores: 43,300"
            let baseline = (row["baseline"] ?? "").components(separatedBy: ": ").first ?? ""
            let ratio = row["ratio"] ?? ""
            return [what, "\(value) \(unit)", ratio.isEmpty ? "" : "\(ratio) x \(baseline)"]
        }
        let machine = ["processor", "cores", "date"].map { results.fact($0) ?? "unknown" }
        return """
            \(beginMark)
            \(ResultsDocument.markdown([["what", "measured", "ratio to its baseline"]] + rows))

            Measured on an \(machine[0]) with \(machine[1]) cores, \(machine[2]). \
            [All figures, with plots and conditions](Benchmarks/RESULTS.md).
            \(endMark)
            """
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
