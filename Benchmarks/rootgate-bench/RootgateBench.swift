import Foundation
import Hashing
import Kernels
import LoadHarness
import Platform

let usage = """
    usage: rootgate-bench [--filter NAME] [--seconds N] [--json] [--tiny] [--quiet]
                          [--kernel NAME,...]
           rootgate-bench --report [--filter NAME] [--output DIRECTORY] [--seconds N] [--huge] [--soak MINUTES]
                          [--tiny] [--quiet]
           rootgate-bench --list [--report] [--filter NAME]

    --filter NAME       only benchmarks and sweeps whose names contain NAME; may be repeated
    --seconds N         how long a round measures, from 0.01 to 60 (default: 0.4); signed proofs are sent for 3/8 of it,
                        because they have to be signed beforehand
    --json              an array of {"name","value","unit","minimum","maximum","baseline","ratio"}
    --report            all benchmarks, and sweeps over kernels, batch sizes, connections, roots, known keys,
                        threads and load, written to RESULTS.md and plots/*.svg in Benchmarks/results/KIND, where
                        KIND names what verifies this machine's signatures; with --filter, RESULTS.md keeps the
                        figures of the others. The figures in README.md are rewritten too. A report that ends early
                        leaves what it has measured in RESULTS.unfinished.md, and RESULTS.md as it was
    --output DIRECTORY  where the report goes instead; the README's figures go to figures.md there, and README.md
                        stays as it is
    --huge              100 million roots too: 10 GB in the temporary directory and half an hour more
    --soak MINUTES      how long sweep.soak lasts (default: 1)
    --kernel NAME,...   kernels to use, one for signatures and one for hashing at most (default: the quickest)
    --tiny              tiny sizes, which only show that everything runs; the figures mean nothing. With --report it
                        needs --output
    --quiet             don't show progress on stderr
    --list              names only; with --report, those of the sweeps too
    --help              this text

    A benchmark runs five rounds. A round ends by time, so it takes as long on a slow machine as on a fast one. A
    benchmark whose set-up takes more than 15 minutes is left out. Each benchmark alternates with its baseline in the
    same run. Trust the ratios, not the absolute figures. The 10-million-root benchmarks need about 4 GB in the
    temporary directory and ten minutes.

    The benchmarks of clusters need the program etcd, and are skipped without it, as stderr says.

    exit codes: 0 done; 1 something was left out, as stderr says; 2 wrong usage or an error
    """

/// Benchmarks whose figures reports have. The others are run by name.
var reportedBenchmarks: [Benchmark] { commonBenchmarks + kernelBenchmarks }

/// Those that every machine has.
let commonBenchmarks =
    hashBenchmarks + signatureBenchmarks + storageBenchmarks + proofBenchmarks + mutationBenchmarks
    + collaborationBenchmarks + encryptionBenchmarks + clusterBenchmarks

/// Those of the kernels that this machine can run.
var kernelBenchmarks: [Benchmark] { hashKernelBenchmarks + signatureKernelBenchmarks }

var allBenchmarks: [Benchmark] { reportedBenchmarks + fairnessBenchmarks + operatorBenchmarks }

/// The command line of the benchmarks.
@main
enum RootgateBench {
    private struct Options {
        var filters: [String] = []
        var output: String?
        var seconds: Double?
        var isQuiet = false
        var isJSON = false
        var isReport = false
        var isHuge = false
        var soakSeconds = 60.0
        var isTiny = false
        var isList = false

        func chooses(_ name: String) -> Bool { filters.isEmpty || filters.contains { name.contains($0) } }
    }

    static func main() {
        Libcrypto.stayUntilExit()
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
            case "--seconds":
                guard let text = words.popFirst(), let seconds = Double(text), (0.01...60).contains(seconds) else {
                    return fail("--seconds needs a number from 0.01 to 60")
                }
                options.seconds = seconds
            case "--kernel":
                guard let names = words.popFirst() else { return fail("--kernel needs a name") }
                do {
                    KernelChoice.current = try KernelChoice(names)
                } catch {
                    return fail("--kernel: \(error.name) \(error.text)")
                }
            case "--quiet": options.isQuiet = true
            case "--json": options.isJSON = true
            case "--report": options.isReport = true
            case "--huge": options.isHuge = true
            case "--soak":
                guard let text = words.popFirst(), let minutes = Double(text), (0.1...10_000).contains(minutes) else {
                    return fail("--soak needs a number of minutes from 0.1 to 10000")
                }
                options.soakSeconds = 60 * minutes
            case BenchService.option:
                guard let directory = words.popFirst() else { return fail("\(word) needs a directory") }
                do { try BenchService.serve(directory) } catch { return fail("\(error)") }
                return
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
        let benchmarks = (options.isReport ? reportedBenchmarks : allBenchmarks).filter { options.chooses($0.name) }
        let sweeps = options.isReport ? allSweeps.filter { options.chooses("sweep.\($0.name)") } : []
        guard !benchmarks.isEmpty || !sweeps.isEmpty else {
            return fail("no benchmark has such a name; --list shows them")
        }
        if options.isList {
            return print((benchmarks.map(\.name) + sweeps.map { "sweep.\($0.name)" }).joined(separator: "\n"))
        }
        guard !(options.isReport && options.isTiny && options.output == nil) else {
            return fail("--report --tiny needs --output, or its figures would replace the real ones")
        }
        let progress = ProgressMeter.onStandardError("rootgate-bench", isQuiet: options.isQuiet)
        defer { progress.end() }
        let scale = Scale(isTiny: options.isTiny, seconds: options.seconds, progress: progress)
        var leftOut: [String] = []
        if options.isReport {
            leftOut = try Report(
                directory: URL(fileURLWithPath: options.output ?? MachineKind(kernels: kernelNames()).folder),
                readme: options.output == nil ? URL(fileURLWithPath: "README.md") : nil,
                isWhole: options.filters.isEmpty,
                scale: SweepScale(scale: scale, isHuge: options.isHuge, soakSeconds: options.soakSeconds),
                benchmarks: benchmarks, sweeps: sweeps,
                note: { text in progress.aside { say(text) } }
            ).write()
        } else {
            leftOut = try measure(benchmarks, scale, isJSON: options.isJSON)
        }
        progress.end()
        guard leftOut.isEmpty else {
            for text in leftOut { say("left out: \(text)") }
            forgetShared()
            exit(1)
        }
    }

    /// Returns what was left out, and why.
    private static func measure(_ benchmarks: [Benchmark], _ scale: Scale, isJSON: Bool) throws -> [String] {
        var results: [Measurement] = []
        var leftOut: [String] = []
        var shares = WorkShares(total: benchmarks.reduce(0) { $0 + $1.seconds })
        if !isJSON { print(row("benchmark", "median", "unit", "min", "max", "ratio", "baseline")) }
        for benchmark in benchmarks {
            scale.progress.begin(benchmark.name, share: shares.next(benchmark.seconds))
            Machine.settle()
            do {
                let result = try benchmark.run(scale)
                results.append(result)
                if !isJSON { scale.progress.aside { show(result) } }
            } catch let error as SetUpTooLong {
                leftOut.append("\(benchmark.name): \(error)")
            } catch let error as Skipped {
                scale.progress.aside { say("skipped: \(benchmark.name): \(error.reason)") }
            }
        }
        if isJSON {
            let data = try JSONSerialization.data(
                withJSONObject: results.map(\.json), options: [.sortedKeys, .prettyPrinted])
            scale.progress.aside { print(String(decoding: data, as: UTF8.self)) }
        }
        return leftOut
    }

    private static func show(_ result: Measurement) {
        print(
            row(
                result.name, number(result.value), result.unit, number(result.spread.lowerBound),
                number(result.spread.upperBound), result.ratio.map { String(format: "%.3f", $0) } ?? "",
                result.baseline.map { "\($0.name) \(number($0.value))" } ?? ""))
        fflush(nil)
    }

    private static func row(_ fields: String...) -> String {
        let widths = [36, 12, 14, 12, 12, 8, 0]
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
        try? FileHandle.standardError.write(contentsOf: Data("rootgate-bench: \(text)\n".utf8))
    }

    private static func fail(_ text: String) {
        say(text)
        forgetShared()
        exit(2)
    }
}
