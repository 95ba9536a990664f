import Foundation
import Platform

/// A benchmark: one measurement under one name.
struct Benchmark: Sendable {
    let name: String
    /// What is measured, in a few words.
    let about: String
    let run: @Sendable (Scale) throws -> Measurement

    init(_ name: String, _ about: String, _ run: @escaping @Sendable (Scale) throws -> Measurement) {
        self.name = name
        self.about = about
        self.run = run
    }
}

let usage = """
    usage: rootgate-bench [--filter NAME] [--json] [--tiny] [--list]
           rootgate-bench --report [--filter NAME] [--output DIRECTORY] [--huge] [--tiny]

    --filter NAME       only benchmarks and sweeps whose names contain NAME; may be repeated
    --json              an array of {"name","value","unit","minimum","maximum","baseline","ratio"}
    --report            all benchmarks, and sweeps over batch sizes, connections, roots, known keys, threads and
                        load, written to RESULTS.md and plots/*.svg
    --output DIRECTORY  where the report goes (default: Benchmarks)
    --huge              100 million roots too: 10 GB in the temporary directory and half an hour more
    --tiny              tiny sizes, to see that everything runs; the figures mean nothing
    --list              names only; with --report, those of the sweeps too

    Ratios are measured in alternation with their baseline in the same run: trust them, not absolutes.
    The 10-million-root benchmarks need about 2 GB in the temporary directory and a few minutes.
    """

/// The command line of the benchmarks.
@main
enum RootgateBench {
    private struct Options {
        var filters: [String] = []
        var output = "Benchmarks"
        var isJSON = false
        var isReport = false
        var isHuge = false
        var isTiny = false
        var isList = false

        func chooses(_ name: String) -> Bool { filters.isEmpty || filters.contains { name.contains($0) } }
    }

    static func main() {
        var options = Options()
        var words = CommandLine.arguments.dropFirst()
        while let word = words.popFirst() {
            switch word {
            case "--filter":
                guard let filter = words.popFirst() else { return fail("--filter needs a name") }
                options.filters.append(filter)
            case "--output":
                guard let output = words.popFirst() else { return fail("--output needs a directory") }
                options.output = output
            case "--json": options.isJSON = true
            case "--report": options.isReport = true
            case "--huge": options.isHuge = true
            case "--tiny": options.isTiny = true
            case "--list": options.isList = true
            case "--help", "-h": return print(usage)
            default: return fail("unknown option \(word)")
            }
        }
        // A service and its load generator in one process: thousands of connections, both ends.
        System.raiseDescriptorLimit()
        defer { forgetShared() }
        do {
            try run(options)
        } catch {
            fail("\(error)")
        }
    }

    private static func run(_ options: Options) throws {
        let all =
            hashBenchmarks + signatureBenchmarks + storageBenchmarks + proofBenchmarks + mutationBenchmarks
            + collaborationBenchmarks
        let benchmarks = all.filter { options.chooses($0.name) }
        let sweeps = options.isReport ? sweeps.filter { options.chooses("sweep.\($0.name)") } : []
        guard !benchmarks.isEmpty || !sweeps.isEmpty else {
            return fail("no benchmark has such a name; --list shows them")
        }
        let scale = Scale(isTiny: options.isTiny)
        if options.isList {
            print((benchmarks.map(\.name) + sweeps.map { "sweep.\($0.name)" }).joined(separator: "\n"))
        } else if options.isReport {
            let begin = Date()
            try Report(
                directory: URL(fileURLWithPath: options.output),
                scale: SweepScale(scale: scale, isHuge: options.isHuge), benchmarks: benchmarks, sweeps: sweeps
            ) { name in
                say("\(Int(Date().timeIntervalSince(begin))) s: \(name)")
            }.write()
        } else {
            try measure(benchmarks, scale, isJSON: options.isJSON)
        }
    }

    private static func measure(_ benchmarks: [Benchmark], _ scale: Scale, isJSON: Bool) throws {
        var results: [Measurement] = []
        if !isJSON { print(row("benchmark", "median", "unit", "min", "max", "ratio", "baseline")) }
        for benchmark in benchmarks {
            let result = try benchmark.run(scale)
            results.append(result)
            if !isJSON {
                print(
                    row(
                        result.name, number(result.value), result.unit, number(result.spread.lowerBound),
                        number(result.spread.upperBound), result.ratio.map { String(format: "%.3f", $0) } ?? "",
                        result.baseline.map { "\($0.name) \(number($0.value))" } ?? ""))
                fflush(nil)
            }
        }
        if isJSON {
            let data = try JSONSerialization.data(
                withJSONObject: results.map(\.json), options: [.sortedKeys, .prettyPrinted])
            print(String(decoding: data, as: UTF8.self))
        }
    }

    private static func row(_ fields: String...) -> String {
        let widths = [28, 12, 14, 12, 12, 8, 0]
        return zip(fields, widths).map { field, width in
            field.count >= width ? field + " " : field.padding(toLength: width, withPad: " ", startingAt: 0)
        }.joined()
    }

    private static func number(_ value: Double) -> String {
        value >= 1000 ? "\(Int(value))" : String(format: "%.2f", value)
    }

    /// Removes the files of what benchmarks share.
    private static func forgetShared() {
        ProofBench.forgetShared()
        SharedStorage.forget()
    }

    private static func say(_ text: String) {
        FileHandle.standardError.write(Data("rootgate-bench: \(text)\n".utf8))
    }

    private static func fail(_ text: String) {
        say(text)
        forgetShared()
        exit(2)
    }
}
