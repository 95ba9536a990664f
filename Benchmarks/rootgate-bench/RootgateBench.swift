import Foundation

/// A benchmark: one measurement under one name.
struct Benchmark: Sendable {
    let name: String
    let run: @Sendable (Scale) throws -> Measurement
}

let usage = """
    usage: rootgate-bench [--filter NAME] [--json] [--tiny] [--list]

    --filter NAME   only benchmarks whose names contain NAME; may be repeated
    --json          an array of {"name","value","unit","minimum","maximum","baseline","ratio"}
    --tiny          tiny sizes, to see that everything runs; the figures mean nothing
    --list          names only

    Ratios are measured in alternation with their baseline in the same run: trust them, not absolutes.
    The 10-million-root benchmarks need about 2 GB in the temporary directory and a few minutes.
    """

/// The command line of the benchmarks.
@main
enum RootgateBench {
    static func main() {
        var filters: [String] = []
        var isJSON = false
        var isTiny = false
        var isList = false
        var words = CommandLine.arguments.dropFirst()
        while let word = words.popFirst() {
            switch word {
            case "--filter":
                guard let filter = words.popFirst() else { return fail("--filter needs a name") }
                filters.append(filter)
            case "--json": isJSON = true
            case "--tiny": isTiny = true
            case "--list": isList = true
            case "--help", "-h": return print(usage)
            default: return fail("unknown option \(word)")
            }
        }
        let all = hashBenchmarks + signatureBenchmarks + storageBenchmarks + proofBenchmarks + mutationBenchmarks
        let chosen = all.filter { benchmark in filters.isEmpty || filters.contains { benchmark.name.contains($0) } }
        guard !chosen.isEmpty else { return fail("no benchmark has such a name; --list shows them") }
        if isList { return print(chosen.map(\.name).joined(separator: "\n")) }
        do {
            try run(chosen, Scale(isTiny: isTiny), isJSON: isJSON)
        } catch {
            fail("\(error)")
        }
    }

    private static func run(_ benchmarks: [Benchmark], _ scale: Scale, isJSON: Bool) throws {
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

    private static func fail(_ text: String) {
        FileHandle.standardError.write(Data("rootgate-bench: \(text)\n".utf8))
        exit(2)
    }
}
