import Foundation
import LoadHarness

/// Measures everything and writes `RESULTS.md`, its plots, and the README's figures.
struct Report {
    /// Where RESULTS.md and the plots go.
    let directory: URL
    /// The README whose figures are rewritten; without it they go into a file of their own in `directory`.
    let readme: URL?
    /// Whether everything is measured. Otherwise RESULTS.md keeps what it has of the rest.
    let isWhole: Bool
    let scale: SweepScale
    let benchmarks: [Benchmark]
    let sweeps: [Sweep]
    /// Called with messages for the user.
    let note: (String) -> Void

    private var results: URL { directory.appendingPathComponent("RESULTS.md") }
    /// What is measured so far. A report that ends early leaves it.
    private var unfinished: URL { directory.appendingPathComponent("RESULTS.unfinished.md") }
    private var plots: URL { directory.appendingPathComponent("plots") }
    private var progress: ProgressMeter { scale.scale.progress }

    /// Returns what was left out, and why. Until everything is measured, what is measured so far is in
    /// RESULTS.unfinished.md.
    ///
    /// Throws `ReportError` before anything is measured when the README has no place for figures, or when RESULTS.md is
    /// to keep figures of another machine.
    func write() throws -> [String] {
        if let readme { _ = try ReadmeFigures.region(in: String(contentsOf: readme, encoding: .utf8)) }
        var document = try startingDocument()
        try FileManager.default.createDirectory(at: plots, withIntermediateDirectories: true)
        var leftOut: [String] = []
        var shares = WorkShares(
            total: sweeps.reduce(0) { $0 + $1.seconds } + benchmarks.reduce(0) { $0 + $1.seconds })
        // Sweeps first: the benchmarks of whole proofs go on with their service.
        for sweep in sweeps {
            progress.begin("sweep.\(sweep.name)", share: shares.next(sweep.seconds))
            do {
                document.setSection(sweep.title, try section(sweep))
                try store(document, in: unfinished)
            } catch let error as SetUpTooLong {
                leftOut.append("sweep.\(sweep.name): \(error)")
            }
        }
        for benchmark in benchmarks {
            progress.begin(benchmark.name, share: shares.next(benchmark.seconds))
            Machine.settle()
            do {
                document.set(try benchmark.run(scale.scale), about: benchmark.about)
                try store(document, in: unfinished)
            } catch let error as SetUpTooLong {
                leftOut.append("\(benchmark.name): \(error)")
            } catch let error as Skipped {
                note("skipped: \(benchmark.name): \(error.reason)")
            }
        }
        if let section = Sizing.section(from: document) { document.setSection(Sizing.title, section) }
        try store(document, in: results)
        if FileManager.default.fileExists(atPath: unfinished.path) {
            try FileManager.default.removeItem(at: unfinished)
        }
        do {
            try writeFigures(document)
        } catch let error as ReportError {
            note(error.description)
        }
        return leftOut
    }

    /// The document that the figures go into: what RESULTS.md has, unless everything is measured anew.
    private func startingDocument() throws -> ResultsDocument {
        var document = ResultsDocument(facts: Machine.facts)
        guard !isWhole, let text = try? String(contentsOf: results, encoding: .utf8) else { return document }
        let earlier = ResultsDocument(parsing: text)
        for name in ["processor", "cores"] where earlier.fact(name) != document.fact(name) {
            throw ReportError("\(results.path) has figures of another machine: say --output, or leave --filter out")
        }
        let facts = document.facts
        document = earlier
        document.facts = facts
        return document
    }

    /// Writes the document in the order of the lists of benchmarks and sweeps. The file is whole or as it was.
    private func store(_ document: ResultsDocument, in file: URL) throws {
        var document = document
        document.order(
            benchmarks: reportedBenchmarks.map { "`\($0.name)`" }, sections: allSweeps.map(\.title) + [Sizing.title])
        let warning = scale.scale.isTiny ? " **Tiny sizes: these figures mean nothing.**" : ""
        try Data(document.text(warning: warning).utf8).write(to: file, options: .atomic)
    }

    private func section(_ sweep: Sweep) throws -> String {
        let before = try scale.reference()
        let result = try sweep.run(scale)
        progress.show("reference load")
        let after = try scale.reference()
        let names = result.plots.indices.map { result.plots.count > 1 ? "\(sweep.name)-\($0 + 1)" : sweep.name }
        for (name, plot) in zip(names, result.plots) {
            try Data(plot.svg.utf8).write(to: plots.appendingPathComponent("\(name).svg"))
        }
        let conditions =
            (result.conditions.isEmpty ? "" : "Conditions: \(result.conditions). ")
            + "The reference load reached \(rounded(before)) proofs/s right before this sweep and \(rounded(after)) "
            + "right after it."
        let images = zip(names, result.plots).map { "![\($1.title)](plots/\($0).svg)" }
        let table = ResultsDocument.markdown([result.header] + result.rows)
        return ([sweep.about, conditions] + images + [table]).joined(separator: "\n\n")
    }

    /// Writes the README's figures, from the results of every kind of machine; without a README those of this machine,
    /// if a filter has left none of them out.
    private func writeFigures(_ document: ResultsDocument) throws {
        guard let readme else {
            guard ReadmeFigures.names.allSatisfy({ document.row($0) != nil }) else { return }
            let here = MachineResults(kind: MachineKind(kernels: kernelNames()), document: document)
            let region = try ReadmeFigures.region(from: [here])
            return try Data((region + "\n").utf8).write(to: directory.appendingPathComponent("figures.md"))
        }
        let region = try ReadmeFigures.region(from: MachineResults.all(in: readme.deletingLastPathComponent()))
        let text = try String(contentsOf: readme, encoding: .utf8)
        try Data(ReadmeFigures.replace(in: text, with: region).utf8).write(to: readme)
    }
}
