import CLMDB
import COpenSSL
import Foundation

/// Measures everything and writes it down for people: `RESULTS.md`, and the plots that it shows.
struct Report {
    let directory: URL
    let scale: SweepScale
    let benchmarks: [Benchmark]
    let sweeps: [Sweep]
    /// Told what is being measured.
    let progress: (String) -> Void

    func write() throws {
        let plots = directory.appendingPathComponent("plots")
        try FileManager.default.createDirectory(at: plots, withIntermediateDirectories: true)
        var sections = [Report.header(isTiny: scale.scale.isTiny)]
        // Sweeps first: their service is the one that the benchmarks of whole proofs go on with.
        var answers: [String] = []
        for sweep in sweeps {
            progress("sweep \(sweep.name)")
            let result = try sweep.run(scale)
            let names = result.plots.indices.map { result.plots.count > 1 ? "\(sweep.name)-\($0 + 1)" : sweep.name }
            for (name, plot) in zip(names, result.plots) {
                try Data(plot.svg.utf8).write(to: plots.appendingPathComponent("\(name).svg"))
            }
            let images = zip(names, result.plots).map { "![\($1.title)](plots/\($0).svg)" }
            answers.append(
                (["## \(sweep.title)", sweep.about] + images + [table(result.header, result.rows)])
                    .joined(separator: "\n\n"))
        }
        if !benchmarks.isEmpty {
            sections.append(try figures())
        }
        let text = (sections + answers).joined(separator: "\n\n") + "\n"
        try Data(text.utf8).write(to: directory.appendingPathComponent("RESULTS.md"))
    }

    private func figures() throws -> String {
        var rows: [[String]] = []
        for benchmark in benchmarks {
            progress(benchmark.name)
            let result = try benchmark.run(scale.scale)
            rows.append([
                "`\(result.name)`", benchmark.about, rounded(result.value), result.unit,
                result.baseline.map { "\($0.name): \(rounded($0.value))" } ?? "",
                result.ratio.map { String(format: "%.2f", $0) } ?? "",
                "\(rounded(result.spread.lowerBound)) to \(rounded(result.spread.upperBound))",
            ])
        }
        return """
            ## Benchmarks

            The value is the median of \(scale.scale.rounds) rounds (60 for `proof.layer.loopback`), the spread their lowest and highest. A ratio is \
            value over baseline, measured in alternation, and the median of the rounds' own ratios.

            \(table(["name", "what", "value", "unit", "baseline", "ratio", "spread"], rows))
            """
    }

    private func table(_ header: [String], _ rows: [[String]]) -> String {
        let lines = [header, header.map { _ in "---" }] + rows
        return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    private static func header(isTiny: Bool) -> String {
        let facts = [
            ("date", ISO8601DateFormatter.string(from: Date(), timeZone: .gmt, formatOptions: [.withFullDate])),
            ("processor", Machine.processor),
            ("cores", "\(ProcessInfo.processInfo.activeProcessorCount)"),
            ("system", Machine.system),
            ("kernels", kernelNames().joined(separator: ", ")),
            ("OpenSSL", String(cString: OpenSSL_version(OPENSSL_VERSION))),
            ("LMDB", String(cString: mdb_version(nil, nil, nil))),
            ("Swift", Machine.swift),
        ]
        return """
            # Results

            Written by `swift run -c release rootgate-bench --report` on one machine; run it on yours. Load generator \
            and service share its cores. Absolute figures move with the machine's clock and with what else runs on \
            it: trust ratios and shapes. Points are medians of several rounds, with bars from the lowest to the \
            highest.\(isTiny ? " **Tiny sizes: these figures mean nothing.**" : "")

            | | |
            | --- | --- |
            \(facts.map { "| \($0.0) | \($0.1) |" }.joined(separator: "\n"))
            """
    }
}

/// What this machine is, as far as it says.
private enum Machine {
    static var processor: String {
        #if os(Linux)
        let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
        return model?.trimmingCharacters(in: .whitespaces) ?? architecture
        #else
        return output(of: "/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string") ?? architecture
        #endif
    }

    static var system: String {
        let release = (try? String(contentsOfFile: "/etc/os-release", encoding: .utf8))?.split(separator: "\n") ?? []
        let name = release.first { $0.hasPrefix("PRETTY_NAME=") }?.dropFirst("PRETTY_NAME=".count)
        let kernel = output(of: "/usr/bin/env", "uname", "-sr") ?? ""
        let version = ProcessInfo.processInfo.operatingSystemVersionString
        return [name.map { String($0.replacing("\"", with: "")) } ?? version, kernel].joined(separator: ", ")
    }

    static var swift: String {
        output(of: "/usr/bin/env", "swift", "--version") ?? "unknown"
    }

    private static var architecture: String { output(of: "/usr/bin/env", "uname", "-m") ?? "unknown" }

    /// The first line that a program prints; `nil` when it can't be run or says nothing.
    private static func output(of program: String, _ arguments: String...) -> String? {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split(separator: "\n").first.map(String.init)
    }
}

/// To three digits, with the thousands apart: 44,200; 1.23.
func rounded(_ value: Double) -> String {
    guard value.isFinite, value != 0, let short = Double(String(format: "%.2e", value)) else { return "0" }
    let decimals = 2 - Int(floor(log10(abs(short))))
    return decimals > 0 ? String(format: "%.*f", decimals, short) : grouped(Int(short))
}

/// 1234567 as 1,234,567.
func grouped(_ value: Int) -> String {
    let digits = Array(String(abs(value)))
    let text = digits.enumerated().map { index, digit in
        index > 0 && (digits.count - index) % 3 == 0 ? ",\(digit)" : "\(digit)"
    }.joined()
    return value < 0 ? "-\(text)" : text
}
